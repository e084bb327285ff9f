"""Rule: a changed policy of a queue counts one to five seconds later."""

from collections.abc import Callable
from dataclasses import dataclass, field

from signalbox.local.emulator.weather.calls import Answer, Call, Clock, Forward
from signalbox.local.emulator.weather.dice import Dice
from signalbox.local.emulator.weather.rules import POLICY_SECONDS

RULE = "queue policies"
CHANGES = ("SetQueueAttributes", "AddPermission", "RemovePermission")


@dataclass(frozen=True, slots=True)
class QueuePolicies:
    """The policies of queues before recent changes; the policy of a new queue counts with the queue."""

    clock: Clock
    dice: Dice
    current: Callable[[str], str]
    """Returns the policy that a queue of this name has, or an empty text."""
    _before: dict[str, list[tuple[float, str]]] = field(default_factory=dict)

    async def answer(self, call: Call, forward: Forward) -> Answer:
        """Return the answer, and note the policy that a change replaces."""
        if call.service != "sqs" or call.action not in CHANGES:
            return await forward(call)
        queue = call.resource
        before = self.current(queue)
        answer = await forward(call)
        if self.current(queue) != before:
            shortest, longest = POLICY_SECONDS
            delay = shortest + (longest - shortest) * self.dice.throw(RULE, queue)
            self._before.setdefault(queue, []).append((self.clock() + delay, before))
        return answer

    def policy(self, queue: str, current: str) -> str:
        """Return the policy that counts now: the one before the oldest change that does not count yet."""
        now = self.clock()
        return next((before for until, before in list(self._before.get(queue, ())) if until > now), current)
