"""Rule: a changed policy of a queue counts one to five seconds later.

MiniStack checks the policy that the queue has. On AWS, a changed one reaches all servers of SQS later.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original
from tests.fault_injection.calls import Answer, Clock, Forward, ServiceCall
from tests.fault_injection.chance import Chance

SQS = "ministack.services.sqs"
ENFORCE, FOR_IDENTITY, FOR_SERVICE = (
    f"{SQS}:{name}" for name in ("_enforce_queue_policy", "queue_policy_for_arn", "queue_policy_allows")
)
BY_ARN = f"{SQS}:_queue_by_arn"
POLICY = "Policy"

POLICY_SECONDS = (1.0, 5.0)  # of the 60 s that AWS allows, so that a test sees the change

RULE = "queue policies"
CHANGES = ("SetQueueAttributes", "AddPermission", "RemovePermission")


@dataclass(frozen=True, slots=True)
class QueuePolicies:
    """The policies of queues before recent changes; the policy of a new queue counts with the queue."""

    clock: Clock
    chance: Chance
    current: Callable[[str], str]
    """Returns the policy that a queue of this name has, or an empty text."""
    _before: dict[str, list[tuple[float, str]]] = field(default_factory=dict)

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return the answer, and note the policy that a change replaces."""
        if call.service != "sqs" or call.action not in CHANGES:
            return await forward(call)
        queue = call.resource
        before = self.current(queue)
        answer = await forward(call)
        if self.current(queue) != before:
            shortest, longest = POLICY_SECONDS
            delay = shortest + (longest - shortest) * self.chance.draw(RULE, queue)
            self._before.setdefault(queue, []).append((self.clock() + delay, before))
        return answer

    def policy(self, queue: str, current: str) -> str:
        """Return the policy that counts now: the one before the oldest change that does not count yet."""
        now = self.clock()
        return next((before for until, before in list(self._before.get(queue, ())) if until > now), current)


Queue = Mapping[str, Any]
Find = Callable[[str], Queue | None]


def as_before(queue: Queue, policies: QueuePolicies) -> Queue:
    """Return a queue with the policy that counts."""
    counting = policies.policy(queue["name"], queue["attributes"].get(POLICY) or "")
    return {**queue, "attributes": {**queue["attributes"], POLICY: counting}}


def finding(find: Find, policies: QueuePolicies) -> Find:
    """Return a `find` of a queue by its ARN that returns it with the policy that counts."""

    def found_as_before(arn: str) -> Queue | None:
        queue = find(arn)
        return queue and as_before(queue, policies)

    return found_as_before


def patch(policies: QueuePolicies) -> Patch:
    """Return the patch for these policies."""

    def replacements() -> Mapping[str, object]:
        enforce, find = original(ENFORCE), finding(original(BY_ARN), policies)

        def enforce_as_before(queue: Queue, action: str) -> None:
            enforce(as_before(queue, policies), action)

        # `_queue_by_arn` also finds the queues that messages are put into, so only these two functions get the other.
        checks = {name: _with_global(original(name), "_queue_by_arn", find) for name in (FOR_IDENTITY, FOR_SERVICE)}
        return {ENFORCE: enforce_as_before, **checks}

    return Patch(
        sources={
            ENFORCE: "2ab74344d2b2bd18",
            FOR_IDENTITY: "fd2276b9eed5c2b0",
            FOR_SERVICE: "5de01aa09a4ceb84",
            BY_ARN: "b4981875c8186c19",
        },
        replacements=replacements,
    )


def _with_global(function: FunctionType, name: str, value: object) -> FunctionType:
    """Return a function that finds another object under a name of its module."""
    return FunctionType(function.__code__, {**function.__globals__, name: value}, function.__name__)
