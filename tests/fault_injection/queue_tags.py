"""Rules: an existing queue is not created again with other tags, and calls about tags are few."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.fault_injection.calls import Answer, Clock, Forward, ServiceCall
from tests.fault_injection.errors import QUEUE_EXISTS, faults_of

TAG_CALLS = ("ListQueueTags", "TagQueue", "UntagQueue")
CALLS_PER_SECOND = 5


@dataclass(frozen=True, slots=True)
class QueueTags:
    """`tags` returns the tags of a queue by its name, or None if it does not exist."""

    clock: Clock
    tags: Callable[[str], Mapping[str, str] | None]
    called_at: deque[float] = field(default_factory=lambda: deque([float("-inf")] * CALLS_PER_SECOND, CALLS_PER_SECOND))

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return the answer, or the error of a queue with other tags or of too many calls."""
        if call.service == "sqs" and call.action == "CreateQueue" and self._has_others(call):
            return QUEUE_EXISTS.answer(call)
        if call.service == "sqs" and call.action in TAG_CALLS and self._is_one_too_many():
            return faults_of(call)[0].answer(call)
        return await forward(call)

    def _has_others(self, call: ServiceCall) -> bool:
        given = call.parameters.get("tags") or call.parameters.get("Tags")
        existing = self.tags(call.resource)
        return bool(given) and existing is not None and dict(existing) != given

    def _is_one_too_many(self) -> bool:
        now = self.clock()
        if now - self.called_at[0] < 1:
            return True
        self.called_at.append(now)
        return False
