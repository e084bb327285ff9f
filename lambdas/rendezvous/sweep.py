"""The function `sweep`: it deletes ended client queues, and daily orphaned ones; it recreates the broker queue."""

import json
import logging
from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from typing import Any

from lambdas.rendezvous import wiring
from lambdas.shared import guarding, instance
from lambdas.shared.threads import parallel_map
from signalbox.aws.rendezvous.cursors import LEASES, DynamoCursor
from signalbox.aws.rendezvous.offers import DynamoQueueLeases
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.aws.shared.redrive_policies import SqsRedrivePolicies
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.aws.shared.temporary_queues import SqsTemporaryQueues
from signalbox.errors import EffectFailed
from signalbox.queues import QueueName
from signalbox.rendezvous.rules.sweep_service import LeaseSweep, OrphanSweep, Parts, SweptPart
from signalbox.task_time import TaskTime

STRAYS = "strays"
SHARE_OF_TIME = 0.8  # of the function's time, in which queues are taken up; the rest is for those in progress

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:  # noqa: ANN401 - Lambda's
    """Execute the task of the schedule and return the number of deleted queues."""
    until = instance.CLOCK.now() + timedelta(milliseconds=context.get_remaining_time_in_millis()) * SHARE_OF_TIME
    settings, orphans = instance.settings(), _orphans()
    prefix, age = settings.text("CLIENT_QUEUE_PREFIX"), settings.seconds("STRAY_QUEUE_AGE_SECONDS")
    parts: list[SweptPart] = []
    if event["task"] == STRAYS:
        _ensure_broker_queue()
        _restrict_broker_queue(instance.task_time(context))
        orphans.start()
    else:
        parts += _recorded(_lease_sweep().end_leases(until=until))
    # The daily task may leave a rest, which the runs of the other schedule continue in the time that they have left.
    parts += _recorded(orphans.delete_strays(prefix=prefix, age=age, until=until))
    failures = [failure for part in parts for failure in part.failures]
    if failures:
        raise EffectFailed(f"{len(failures)} queues were not deleted; the first: {failures[0]}")
    return {"deleted": sum(len(part.events) for part in parts)}


def _ensure_broker_queue() -> None:
    settings = instance.settings()
    attributes = json.loads(settings.text("BROKER_QUEUE_ATTRIBUTES"))
    if attributes:  # empty for an imported broker queue, which its owner manages
        wiring.broker_queue().ensure(settings.text("BROKER_QUEUE_ARN"), attributes)


def _restrict_broker_queue(time: TaskTime) -> None:
    """Let no queue use the broker queue as its dead-letter queue, except those of an imported one's owner."""
    settings = instance.settings()
    url_prefix, _, name = settings.text("BROKER_QUEUE_URL").rpartition("/")
    arn_prefix = settings.text("BROKER_QUEUE_ARN").removesuffix(name)
    policies = SqsRedrivePolicies(instance.sqs(), f"{url_prefix}/", arn_prefix)
    guarding.restrict(policies, {QueueName(name): ()}, time)


def _recorded(parts: Iterable[SweptPart]) -> Iterable[SweptPart]:
    """Record each part when it is done, so that a killed run has recorded all but its last."""
    for part in parts:
        wiring.recorder().record(part.events)
        wiring.flush()
        for failure in part.failures:
            logger.warning("a queue was not deleted: %s", failure)
        yield part


@cache
def leases() -> DynamoLeases:
    """Return the leases of queues that could not be deleted."""
    return DynamoLeases(instance.table("LEASE_TABLE"))


@cache
def _lease_sweep() -> LeaseSweep:
    swept_until = DynamoCursor(instance.table("LEASE_TABLE"), instance.CLOCK, LEASES)
    return LeaseSweep(leases(), _queue_leases(), _queues(), swept_until, _parts())


@cache
def _orphans() -> OrphanSweep:
    cursor, stage = DynamoCursor(instance.table("LEASE_TABLE"), instance.CLOCK), instance.settings().text("STAGE")
    return OrphanSweep(_queue_leases(), _queues(), cursor, _parts(), stage)


def _queue_leases() -> DynamoQueueLeases:
    return DynamoQueueLeases(wiring.table(), wiring.client_queues_url(), wiring.policy().kept_for)


def _queues() -> SqsTemporaryQueues:
    return SqsTemporaryQueues(instance.sqs(), TagCalls())


def _parts() -> Parts:
    return Parts(instance.CLOCK, parallel_map)
