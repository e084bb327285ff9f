"""The function `forward`: it posts offers of the broker queue to an existing broker, and deletes orphan queues."""

import logging
from collections.abc import Iterator
from functools import cache, partial
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lambdas.rendezvous import deliveries, wiring
from lambdas.shared import instance
from lambdas.shared.threads import parallel_map
from signalbox.aws.rendezvous.upstream import HttpBroker
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.aws.shared.temporary_queues import SqsTemporaryQueues
from signalbox.queues import QueueName, queue_name
from signalbox.rendezvous.rules.front_service import FrontService
from signalbox.task_time import PART, TaskTime

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Return the messages whose handling failed; for the task of the schedule, the number of deleted queues."""
    if "Records" not in event:
        return {"deleted": sum(1 for _ in _delete_orphans(instance.task_time(context)))}
    service = _service()  # created once, before the threads share it
    response = deliveries.process(event["Records"], service.receive, instance.record)
    _end_leases(service)
    return response


def _end_leases(service: FrontService) -> None:
    try:
        service.end_leases()
    except (ClientError, BotoCoreError):
        # The offers of the batch are answered: a failed invocation would repeat them.
        logger.exception("the queue of a client was not deleted and is left to the sweep")


def _delete_orphans(time: TaskTime) -> Iterator[QueueName]:
    """Delete queues of instances that ended before the leases."""
    settings = instance.settings()
    before = instance.CLOCK.now() - settings.seconds("STRAY_QUEUE_AGE_SECONDS")
    queues, listed = wiring.client_queues(), SqsTemporaryQueues(instance.sqs(), TagCalls())
    names = iter(listed.listed(settings.text("CLIENT_QUEUE_PREFIX")))
    # Page by page: a list of all could take the whole time.
    while time.now() < time.until and (part := list(islice(names, PART))):
        deleted = parallel_map(partial(queues.delete_old, before=before), part)
        yield from (queue_name(url) for url, is_deleted in zip(part, deleted, strict=True) if is_deleted)


@cache
def _service() -> FrontService:
    policy = wiring.policy()
    return FrontService(
        broker=HttpBroker(instance.settings().text("BROKER_URL")),
        client_queues=wiring.client_queues(),
        clock=instance.CLOCK,
        patience=policy.sqs_patience,
        lease=policy.client_queue_lease,
    )
