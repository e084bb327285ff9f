"""The function `sweep`: it deletes ended client queues, and daily orphaned ones; it recreates the broker queue."""

import json
from functools import cache
from typing import Any

from lambdas.rendezvous import wiring
from lambdas.shared import instance
from signalbox.aws.shared.temporary_queues import SqsTemporaryQueues
from signalbox.rendezvous.rules.sweep_service import SweepService

STRAYS = "strays"


def handler(event: dict[str, Any], _context: object) -> dict[str, int]:
    """Execute the task of the schedule and return the number of deleted queues."""
    settings = instance.settings()
    if event["task"] == STRAYS:
        attributes = json.loads(settings.text("BROKER_QUEUE_ATTRIBUTES"))
        if attributes:  # empty for an imported broker queue, which its owner manages
            wiring.broker_queue().ensure(settings.text("BROKER_QUEUE_NAME"), attributes)
        age = settings.seconds("STRAY_QUEUE_AGE_SECONDS")
        deleted = list(_service().delete_strays(prefix=settings.text("CLIENT_QUEUE_PREFIX"), age=age))
    else:
        deleted = list(_service().end_leases())
    wiring.recorder().record(deleted)
    return {"deleted": len(deleted)}


@cache
def _service() -> SweepService:
    return SweepService(
        leases=wiring.leases(),
        queues=SqsTemporaryQueues(instance.sqs()),
        clock=instance.CLOCK,
        stage=instance.settings().text("STAGE"),
    )
