"""Rules: a new queue cannot be used at once, and the name of a deleted one cannot be used again for a minute."""

import json
from dataclasses import dataclass, field

from tests.fault_injection.calls import Answer, Clock, Forward, ServiceCall
from tests.fault_injection.errors import DEAD_LETTER_TARGET_MISSING, QUEUE_DELETED_RECENTLY, QUEUE_MISSING

NEW_QUEUE_SECONDS, DELETED_NAME_SECONDS = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class RecentQueues:
    """The queues that clients created and deleted recently; those of a stack are usable when it is deployed."""

    clock: Clock
    created: dict[str, float] = field(default_factory=dict)
    deleted: dict[str, float] = field(default_factory=dict)

    def is_new(self, name: str) -> bool:
        """Return whether a queue was created within the last second."""
        return _is_within(self.created, name, self.clock(), NEW_QUEUE_SECONDS)

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return the answer, or the error of a name that cannot be used yet."""
        if call.service != "sqs":
            return await forward(call)
        name, now = call.resource, self.clock()
        if self.is_new(_dead_letter_target(call)):
            return DEAD_LETTER_TARGET_MISSING.answer(call)
        if call.action == "CreateQueue":
            return await self._created(call, forward, name, now)
        if call.action == "DeleteQueue":
            return await self._deleted(call, forward, name)
        if self.is_new(name):
            return QUEUE_MISSING.answer(call)
        return await forward(call)

    async def _created(self, call: ServiceCall, forward: Forward, name: str, now: float) -> Answer:
        if _is_within(self.deleted, name, now, DELETED_NAME_SECONDS):
            return QUEUE_DELETED_RECENTLY.answer(call)
        answer = await forward(call)
        if answer.is_success:
            self.created.setdefault(name, now)  # a repeated CreateQueue does not make it new
        return answer

    async def _deleted(self, call: ServiceCall, forward: Forward, name: str) -> Answer:
        answer = await forward(call)
        if answer.is_success:
            self.created.pop(name, None)
            self.deleted[name] = self.clock()
        return answer


def _dead_letter_target(call: ServiceCall) -> str:
    """Return the name of the queue that a new or changed queue names as its dead-letter queue, or an empty text."""
    attributes = call.parameters.get("Attributes")
    policy = attributes.get("RedrivePolicy") if isinstance(attributes, dict) else None
    return str(json.loads(policy).get("deadLetterTargetArn", "")).rpartition(":")[2] if policy else ""


def _is_within(times: dict[str, float], name: str, now: float, seconds: float) -> bool:
    return name in times and now - times[name] < seconds
