"""The function `control`: executes commands and runs the scheduled tasks of splitting."""

import logging
from typing import Any

from lambdas.shared import guarding, instance
from lambdas.shared.commands import CommandProcessor
from lambdas.splitting import control_wiring as wiring
from lambdas.splitting import target_wiring
from lambdas.splitting.wiring import dead_letters
from signalbox.control.envelope import Envelope
from signalbox.errors import RejectedError
from signalbox.kept.settings import principal_of
from signalbox.queues import QueueName
from signalbox.splitting.control.commands import COMMANDS
from signalbox.splitting.control.protocol import REPLY_MARK
from signalbox.task_time import TaskTime

RECONCILE, STRAYS, KEPT = "reconcile", "strays", "kept"

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Return the failed records of a batch; for a scheduled task, the number of affected splits or queues."""
    instance.begin(context)
    if "Records" in event:
        processor = CommandProcessor(_caller, _answer, _reply_queue, wiring.replies(), dead_letters())
        return processor.process(event["Records"])
    if event["task"] == RECONCILE:
        return {"woken": wiring.loop().wake_all(instance.task_time(context))}
    if event["task"] == STRAYS:
        return {"deleted": _delete_orphans(instance.task_time(context))}
    if event["task"] == KEPT:
        done = wiring.kept_sweeper().sweep(until=instance.task_time(context).until)
        return {"deleted": done.deleted, "complete": done.is_complete}
    raise RejectedError(f"unknown task {event['task']!r}; known: {RECONCILE}, {STRAYS}, {KEPT}")


def _caller(_record: dict[str, Any], sender_id: str) -> str:
    """Return the principal of a sender: IAM lets those send who have the policy of splitting."""
    return principal_of(sender_id)


def _answer(principal: str, envelope: Envelope) -> object:
    return wiring.service().answer(envelope.command(COMMANDS), principal=principal)


def _reply_queue(_principal: str) -> QueueName:
    return QueueName(target_wiring.stage() + REPLY_MARK)


def _delete_orphans(time: TaskTime) -> int:
    guarding.restrict(wiring.redrive_policies(), dict.fromkeys(wiring.sweep().known(), ()), time.half())
    deleted = [*wiring.sweep().delete_orphans(time, prefix=target_wiring.prefix())]
    for name in deleted:
        logger.warning("orphan queue %s is deleted", name)
    return len(deleted)
