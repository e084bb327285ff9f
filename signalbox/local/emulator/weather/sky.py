"""The weather of an emulator: its rules, in the order in which a call passes them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from signalbox.local.emulator.weather.calls import Answer, Call, CallRule, Clock, Forward
from signalbox.local.emulator.weather.dice import Dice
from signalbox.local.emulator.weather.faults import Faults
from signalbox.local.emulator.weather.hot_keys import HotKeys
from signalbox.local.emulator.weather.iam_changes import IamChanges, Policies, Principal
from signalbox.local.emulator.weather.lineage import TraceHeaders
from signalbox.local.emulator.weather.mapping_states import MappingStates
from signalbox.local.emulator.weather.partial_batches import PartialBatches
from signalbox.local.emulator.weather.queue_names import QueueNames
from signalbox.local.emulator.weather.queue_policies import QueuePolicies
from signalbox.local.emulator.weather.stale_views import StaleViews


@dataclass(frozen=True, slots=True)
class Lookups:
    """What the rules read of MiniStack."""

    is_encrypted: Callable[[str], bool]
    """Whether the queue of a name has a key of KMS."""
    partition_key: Callable[[str], str]
    """The name of the partition key of a table."""
    policies: Callable[[Principal], Policies]
    """The policies of a user or role."""
    queue_policy: Callable[[str], str]
    """The policy of the queue of a name, or an empty text."""


class Sky:
    """The state of all rules."""

    def __init__(self, seed: int, clock: Clock, lookups: Lookups) -> None:
        self.dice = Dice(seed)
        self.iam = IamChanges(clock, lookups.policies)
        self.queue_policies = QueuePolicies(clock, self.dice, lookups.queue_policy)
        self.mappings = MappingStates(clock)
        self.call_rules: tuple[CallRule, ...] = (
            Faults(self.dice, lookups.is_encrypted),
            QueueNames(clock),
            StaleViews(clock),
            self.iam,
            self.queue_policies,
            TraceHeaders(),
            PartialBatches(self.dice),
            HotKeys(clock, lookups.partition_key),
        )

    async def answer(self, call: Call, forward: Forward) -> Answer:
        """Return the answer to a call that passes all rules; `forward` carries it out."""
        return await reduce(_through, reversed(self.call_rules), forward)(call)


def _through(forward: Forward, rule: CallRule) -> Forward:
    async def answer(call: Call) -> Answer:
        return await rule.answer(call, forward)

    return answer
