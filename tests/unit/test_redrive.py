"""The guard of redrive allow policies."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from signalbox.errors import EffectFailed
from signalbox.queues import QueueName, allow_policy
from signalbox.redrive import MAXIMUM_SOURCES, Guarded, RedriveGuard, allowed_sources

ORDERS, DEAD = QueueName("orders"), QueueName("orders-dlq")


@dataclass
class MemoryPolicies:
    """`RedrivePolicies` in memory."""

    stored: dict[QueueName, str] = field(default_factory=dict)
    named_by: Sequence[str] = ()
    asked: int = 0

    def arn(self, name: QueueName) -> str:
        return f"arn:{name}"

    def policy(self, name: QueueName) -> str | None:
        return self.stored.get(name)

    def sources(self, name: QueueName) -> Sequence[str]:
        self.asked += 1
        return self.named_by

    def set_policy(self, name: QueueName, policy: str) -> None:
        self.stored[name] = policy


@pytest.mark.parametrize(
    ("policy", "sources"),
    [
        ("", None),
        ('{"redrivePermission": "allowAll"}', None),
        (allow_policy(), frozenset()),
        (allow_policy(["arn:a", "arn:b"]), frozenset({"arn:a", "arn:b"})),
    ],
)
def test_a_policy_allows_all_sources_some_or_none(policy, sources):
    assert allowed_sources(policy) == sources


@pytest.mark.parametrize("before", ["", '{"redrivePermission": "allowAll"}', allow_policy(["arn:eve"])])
def test_a_queue_is_restricted_to_its_sources(before):
    policies = MemoryPolicies({ORDERS: before, DEAD: before})

    guard = RedriveGuard(policies)

    assert guard.restrict(ORDERS) == Guarded(ORDERS, is_changed=True)
    assert guard.restrict(DEAD, sources=[ORDERS]) == Guarded(DEAD, is_changed=True)
    assert policies.stored == {ORDERS: allow_policy(), DEAD: allow_policy(["arn:orders"])}


def test_a_restricted_queue_costs_one_call():
    policies = MemoryPolicies({ORDERS: allow_policy()})

    assert RedriveGuard(policies).restrict(ORDERS) == Guarded(ORDERS)
    assert policies.asked == 0


def test_a_queue_that_is_gone_is_left_out():
    assert RedriveGuard(MemoryPolicies()).restrict(ORDERS) == Guarded(ORDERS)


def test_strangers_that_name_a_queue_are_kept_and_reported_and_no_others_are_let_in():
    policies = MemoryPolicies({DEAD: ""}, named_by=["arn:orders", "arn:theirs"])
    guard = RedriveGuard(policies)

    assert guard.restrict(DEAD, sources=[ORDERS]) == Guarded(DEAD, is_changed=True, strangers=("arn:theirs",))
    assert policies.stored == {DEAD: allow_policy(["arn:orders", "arn:theirs"])}
    assert guard.restrict(DEAD, sources=[ORDERS]) == Guarded(DEAD, strangers=("arn:theirs",))


def test_a_queue_that_more_queues_name_than_a_policy_can_list_keeps_its_policy():
    names = tuple(f"arn:{number:02}" for number in range(MAXIMUM_SOURCES + 1))
    policies = MemoryPolicies({ORDERS: ""}, named_by=names)

    assert RedriveGuard(policies).restrict(ORDERS) == Guarded(ORDERS, strangers=names)
    assert policies.stored == {ORDERS: ""}


def test_a_stranger_that_has_gone_is_no_longer_let_in():
    policies = MemoryPolicies({DEAD: allow_policy(["arn:orders", "arn:theirs"])}, named_by=["arn:orders"])

    RedriveGuard(policies).restrict(DEAD, sources=[ORDERS])

    assert policies.stored == {DEAD: allow_policy(["arn:orders"])}


def test_a_queue_that_cannot_be_restricted_does_not_stop_the_others():
    @dataclass
    class Broken(MemoryPolicies):
        def policy(self, name: QueueName) -> str | None:
            if name == DEAD:
                raise EffectFailed("throttled")
            return super().policy(name)

    guarded = RedriveGuard(Broken({ORDERS: ""}, named_by=["arn:theirs"])).restrict_all({DEAD: (ORDERS,), ORDERS: ()})

    assert [remark for one in guarded for remark in one.remarks()] == [
        "the sources of queue orders-dlq are not restricted: throttled",
        "the sources of queue orders are restricted now",
        "queue orders takes the dead letters of other queues: arn:theirs",
    ]
