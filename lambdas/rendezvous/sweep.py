"""Deletes client queues that are due, and once a day looks for strays and for the broker queue itself."""

import json
from functools import cache
from typing import Any

from lambdas.rendezvous import wiring
from signalbox.aws.shared.temporary_queues import SqsTemporaryQueues
from signalbox.rendezvous.rules.sweep_service import SweepDesk

STRAYS = "strays"


def handler(event: dict[str, Any], _context: object) -> dict[str, int]:
    """Carry out the task that the schedule names; return how many queues were deleted."""
    settings = wiring.settings()
    if event["task"] == STRAYS:
        attributes = json.loads(settings.text("BROKER_QUEUE_ATTRIBUTES"))
        if attributes:  # a queue of somebody else's has none here, and is theirs to look after
            wiring.broker_queue().ensure(settings.text("BROKER_QUEUE_NAME"), attributes)
        age = settings.seconds("STRAY_QUEUE_AGE_SECONDS")
        deleted = list(_desk().delete_strays(prefix=settings.text("CLIENT_QUEUE_PREFIX"), age=age))
    else:
        deleted = list(_desk().end_leases())
    wiring.recorder().record(deleted)
    return {"deleted": len(deleted)}


@cache
def _desk() -> SweepDesk:
    return SweepDesk(
        leases=wiring.leases(),
        queues=SqsTemporaryQueues(wiring.sqs()),
        clock=wiring.CLOCK,
        stage=wiring.settings().text("STAGE"),
    )
