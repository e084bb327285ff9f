"""The function `control`: executes commands and runs the scheduled tasks of splitting."""

import logging
from datetime import timedelta
from typing import Any

from lambdas.shared import guarding, instance
from lambdas.shared.commands import CommandProcessor
from lambdas.splitting import control_wiring as wiring
from lambdas.splitting import target_wiring
from lambdas.splitting.wiring import dead_letters
from signalbox.aws.shared.batch_calls import hide
from signalbox.control.envelope import Envelope
from signalbox.errors import RejectedError
from signalbox.kept.settings import principal_of
from signalbox.kept.sweeper import SweepResult
from signalbox.queues import QueueName
from signalbox.splitting.control.commands import COMMANDS, Audit, Reconcile, Stop
from signalbox.splitting.control.protocol import REPLY_MARK
from signalbox.task_time import TaskTime

RECONCILE, STRAYS = "reconcile", "strays"
# What sessions wait for comes again after this time if the function is killed, not after that of the queue, which must
# exceed the time-out. It exceeds a run of a chain, and its lock for the next one.
REPEATED_AFTER = timedelta(seconds=20)

Caller = tuple[str, str]

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Return the failed records of a batch; for a scheduled task, the number of affected splits or queues."""
    instance.begin(context)
    if "Records" in event:
        processor = CommandProcessor(_caller, _answer, _reply_queue, wiring.replies(), dead_letters())
        return processor.process(event["Records"])
    if event["task"] == RECONCILE:
        return _reconcile(instance.task_time(context))
    if event["task"] == STRAYS:
        return {"deleted": _delete_orphans(instance.task_time(context))}
    raise RejectedError(f"unknown task {event['task']!r}; known: {RECONCILE}, {STRAYS}")


def _caller(record: dict[str, Any], sender_id: str) -> Caller:
    """Return the principal of a sender and the receipt handle: IAM lets those send who have the policy of splitting."""
    return principal_of(sender_id), record["receiptHandle"]


def _answer(caller: Caller, envelope: Envelope) -> object:
    (principal, receipt), command = caller, envelope.command(COMMANDS)
    if isinstance(command, Audit) and not envelope.wants_reply:
        # Each time that Athena is slow it would come again for an hour, with another query.
        raise RejectedError("an audit without a reply has no use: send it with `reply`")
    if isinstance(command, Reconcile | Stop):
        hide(instance.sqs(), instance.settings().text("CONTROL_QUEUE_URL"), {receipt: REPEATED_AFTER})
    return wiring.service().answer(command, principal=principal, delivery=envelope.delivery)


def _reply_queue(_caller: Caller) -> QueueName:
    return QueueName(target_wiring.stage() + REPLY_MARK)


def _reconcile(time: TaskTime) -> dict[str, Any]:
    try:
        woken = wiring.loop().wake_all(time.half())
    finally:
        sweeper = wiring.kept_sweeper()
        swept = sweeper.sweep(time) if sweeper else SweepResult(0, is_complete=True)
    return {"woken": woken, "deleted": swept.deleted, "complete": swept.is_complete}


def _delete_orphans(time: TaskTime) -> int:
    guarding.restrict(wiring.redrive_policies(), dict.fromkeys(wiring.sweep().known(), ()), time.half())
    deleted = [*wiring.sweep().delete_orphans(time, prefix=target_wiring.prefix())]
    for name in deleted:
        logger.warning("orphan queue %s is deleted", name)
    return len(deleted)
