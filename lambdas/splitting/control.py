"""Obeys commands from the control queue, one split at a time, and looks after all of them when the schedule says so."""

import logging
from typing import Any

from lambdas.splitting import control_wiring as wiring
from signalbox.errors import RejectedError, UnavailableError
from signalbox.splitting.commands import Envelope, InvalidEnvelope
from signalbox.splitting.control import ControlDesk
from signalbox.splitting.protocol import REJECTED, REPLY_QUEUE_MARK, UNAVAILABLE
from signalbox.splitting.rounds import RoundDesk

RECONCILE, STRAYS = "reconcile", "strays"

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return the commands that stay in flight; for a task of the schedule, how many it was about."""
    if "Records" in event:
        failed = [record["messageId"] for record in event["Records"] if not _is_handled(record)]
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
    if event["task"] == RECONCILE:
        return {"woken": RoundDesk(wiring.ports()).wake_all()}
    if event["task"] == STRAYS:
        return {"deleted": _delete_strays()}
    raise RejectedError(f"unknown task {event['task']!r}; known: {RECONCILE}, {STRAYS}")


def _is_handled(record: dict[str, Any]) -> bool:
    try:
        _receive(record)
    except Exception:
        logger.exception("command %s was not carried out", record["messageId"])
        return False  # one command must not take its batch along: it stays in flight and comes again
    return True


def _receive(record: dict[str, Any]) -> None:
    try:
        envelope = Envelope.parse(record["body"], reply_prefix=wiring.stage() + REPLY_QUEUE_MARK)
    except InvalidEnvelope as error:
        wiring.replies().bury(record["body"], reason=str(error), message_id=record["messageId"])
        return
    try:
        result = ControlDesk(wiring.ports()).answer(envelope.command())
    except RejectedError as error:
        _refuse(envelope, str(error), REJECTED, record)
    except UnavailableError as error:
        if envelope.reply_queue is None:
            raise
        _refuse(envelope, str(error), UNAVAILABLE, record)  # who waits for a reply decides whether to ask again
    else:
        if envelope.reply_queue is not None:
            wiring.replies().result(envelope.reply_queue, envelope.request_id, result)


def _refuse(envelope: Envelope, error: str, code: str, record: dict[str, Any]) -> None:
    if envelope.reply_queue is not None:
        wiring.replies().error(envelope.reply_queue, envelope.request_id, error, code)
    else:
        wiring.replies().bury(record["body"], reason=error, message_id=record["messageId"])


def _delete_strays() -> int:
    deleted = [*wiring.sweep().delete_strays(prefix=wiring.prefix())]
    deleted += wiring.sweep().delete_reply_queues(prefix=wiring.stage() + REPLY_QUEUE_MARK)
    for name in deleted:
        logger.warning("stray queue %s is deleted", name)
    return len(deleted)
