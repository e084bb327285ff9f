"""The function `forward`: it posts offers of the broker queue to an existing broker, and deletes orphan queues."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from lambdas.rendezvous import deliveries, wiring
from lambdas.shared import instance
from lambdas.shared.threads import parallel_map
from signalbox.aws.rendezvous.upstream import HttpBroker
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.aws.shared.temporary_queues import SqsTemporaryQueues
from signalbox.control.orphan_queues import OrphanQueues
from signalbox.queues import QueueName
from signalbox.rendezvous.reporting.events import CAPABILITY
from signalbox.rendezvous.rules.front_service import FrontService
from signalbox.task_time import TaskTime


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Return the messages that stay in flight; for the task of the schedule, the number of deleted queues."""
    if "Records" not in event:
        return {"deleted": sum(1 for _ in _delete_orphans(instance.task_time(context)))}
    service = _service()  # created once, before the threads share it
    return deliveries.process(event["Records"], service.receive, instance.record)


def _delete_orphans(time: TaskTime) -> Iterator[QueueName]:
    """Delete queues whose offers have expired, or were purged, before the end of the lease."""
    settings = instance.settings()
    queues = SqsTemporaryQueues(instance.sqs(), TagCalls())
    orphans = OrphanQueues(queues, settings.text("STAGE"), CAPABILITY, parallel_map)
    for part in time.parts(orphans.listed(prefix=settings.text("CLIENT_QUEUE_PREFIX"))):
        yield from orphans.delete(orphans.ours(orphans.old(part, now=instance.CLOCK.now())))


@cache
def _service() -> FrontService:
    policy = wiring.policy()
    return FrontService(
        broker=HttpBroker(instance.settings().text("BROKER_URL")),
        client_queues=wiring.client_queues(),
        clock=instance.CLOCK,
        patience=policy.sqs_patience,
        kept_for=policy.kept_for,
    )
