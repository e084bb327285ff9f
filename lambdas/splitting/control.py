"""Obeys commands from the control queue, one split at a time, and looks after all of them when the schedule says so."""

import logging
from typing import Any

from lambdas.shared.commands import CommandProcessor
from lambdas.splitting import control_wiring as wiring
from lambdas.splitting.wiring import dead_letters
from signalbox.control.envelope import Envelope
from signalbox.errors import RejectedError
from signalbox.splitting.control.command_handlers import ControlDesk
from signalbox.splitting.control.commands import COMMANDS
from signalbox.splitting.control.protocol import REPLY_QUEUE_MARK
from signalbox.splitting.control.reconcile_loop import RoundDesk

RECONCILE, STRAYS = "reconcile", "strays"

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return the commands that stay in flight; for a task of the schedule, how many it was about."""
    if "Records" in event:
        processor = CommandProcessor(_answer, wiring.replies(), dead_letters(), lambda _: _reply_prefix())
        return processor.process(event["Records"])
    if event["task"] == RECONCILE:
        return {"woken": RoundDesk(wiring.ports()).wake_all()}
    if event["task"] == STRAYS:
        return {"deleted": _delete_strays()}
    raise RejectedError(f"unknown task {event['task']!r}; known: {RECONCILE}, {STRAYS}")


def _answer(_record: dict[str, Any], envelope: Envelope) -> object:
    return ControlDesk(wiring.ports()).answer(envelope.command(COMMANDS))


def _reply_prefix() -> str:
    return wiring.stage() + REPLY_QUEUE_MARK


def _delete_strays() -> int:
    deleted = [*wiring.sweep().delete_strays(prefix=wiring.prefix())]
    deleted += wiring.sweep().delete_reply_queues(prefix=_reply_prefix())
    for name in deleted:
        logger.warning("stray queue %s is deleted", name)
    return len(deleted)
