"""A changed policy of a queue counts some seconds later."""

import pytest

from tests.fakes.clock import Seconds
from tests.fault_injection.chance import Chance
from tests.fault_injection.queue_policies import QueuePolicies, as_before, finding
from tests.local.emulator.fault_injection.service import Service

URL = "http://x/0/q"


class Sqs(Service):
    """One queue with a policy."""

    policy: str = ""

    async def forward(self, call):
        if self.status == 200:
            self.policy = call.parameters.get("Attributes", {}).get("Policy", self.policy)
        return await super().forward(call)


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def sqs() -> Sqs:
    return Sqs()


@pytest.fixture
def policies(sqs: Sqs, clock: Seconds) -> QueuePolicies:
    return QueuePolicies(clock, Chance(1), lambda _queue: sqs.policy)


def set_policy(sqs: Sqs, policies: QueuePolicies, policy: str) -> None:
    sqs.answer(policies, "sqs", "SetQueueAttributes", QueueUrl=URL, Attributes={"Policy": policy})


def test_the_seed_decides_the_delay(sqs, clock):
    def delay(seed: int) -> float:
        policies, clock.now = QueuePolicies(clock, Chance(seed), lambda _queue: sqs.policy), 0.0
        set_policy(sqs, policies, f"of {seed} {sqs.policy}")
        while policies.policy("q", sqs.policy) != sqs.policy:
            clock.now += 0.01
        return clock.now

    assert delay(1) == delay(1) != delay(2)


def test_two_changes_never_show_a_policy_between_them_before_the_first_counts(sqs, policies, clock):
    set_policy(sqs, policies, "one")
    set_policy(sqs, policies, "two")

    seen = []
    for _ in range(60):
        seen.append(policies.policy("q", sqs.policy))
        clock.now += 0.1

    assert seen == sorted(seen, key=["", "one", "two"].index)
    assert (seen[0], seen[-1]) == ("", "two")


@pytest.mark.parametrize(
    ("service", "action", "parameters"),
    [
        ("sqs", "SetQueueAttributes", {"Attributes": {"VisibilityTimeout": "5"}}),
        ("sqs", "CreateQueue", {"Attributes": {"Policy": "new"}}),
        ("sns", "SetQueueAttributes", {"Attributes": {"Policy": "new"}}),
    ],
)
def test_other_calls_delay_nothing(sqs, policies, service, action, parameters):
    sqs.answer(policies, service, action, QueueUrl=URL, **parameters)

    assert policies.policy("q", "now") == "now"


def test_a_refused_change_delays_nothing(sqs, policies):
    sqs.status = 400
    set_policy(sqs, policies, "new")

    assert policies.policy("q", "now") == "now"


def test_a_queue_is_checked_with_the_policy_that_counts(sqs, policies):
    set_policy(sqs, policies, "new")
    queue = {"name": "q", "attributes": {"Policy": "new", "QueueArn": "arn"}}

    counting = {"name": "q", "attributes": {"Policy": "", "QueueArn": "arn"}}
    assert as_before(queue, policies) == counting
    assert as_before({"name": "other", "attributes": {}}, policies) == {"name": "other", "attributes": {"Policy": ""}}
    assert finding({"arn": queue}.get, policies)("arn") == counting
    assert finding({}.get, policies)("arn") is None
