"""Changes of policies count later, and a new access key is not known."""

import pytest

from signalbox.local.emulator.program import ADMINISTRATOR
from tests.fakes.clock import Seconds
from tests.fault_injection.calls import Answer, Wire
from tests.fault_injection.iam_changes import IamChanges
from tests.local.emulator.fault_injection.service import Service

CREATED = b'<R xmlns="https://iam.amazonaws.com/"><AccessKey><AccessKeyId>AKIA1</AccessKeyId></AccessKey></R>'


class Iam(Service):
    """An IAM that keeps one list of policies and creates one key."""

    policies: list[str]

    async def forward(self, call):
        await super().forward(call)
        if call.action.endswith("Policy"):
            self.policies = [*self.policies, call.parameters["PolicyName"]]
        return Answer(self.status, CREATED)


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def iam() -> Iam:
    iam = Iam()
    iam.policies = []
    return iam


@pytest.fixture
def changes(iam: Iam, clock: Seconds) -> IamChanges:
    return IamChanges(clock, lambda _principal: iam.policies)


def test_each_of_two_changes_counts_at_its_own_time(changes, iam, clock):
    iam.answer(changes, "iam", "PutUserPolicy", UserName="x", PolicyName="one")
    clock.now += 2
    iam.answer(changes, "iam", "PutUserPolicy", UserName="x", PolicyName="two")

    seen = []
    for _ in range(4):
        seen.append(changes.policies(("user", "x"), iam.policies))
        clock.now += 2

    assert seen == [[], [], ["one"], ["one", "two"]]


def test_a_new_key_is_unknown_for_five_seconds(changes, iam, clock):
    iam.answer(changes, "iam", "CreateAccessKey", wire=Wire.QUERY, UserName="x")

    assert changes.is_unknown("AKIA1")
    assert not changes.is_unknown("AKIA2")
    clock.now += 5
    assert not changes.is_unknown("AKIA1")


def test_the_local_stages_own_administrator_counts_at_once(changes, iam):
    iam.answer(changes, "iam", "PutUserPolicy", UserName=ADMINISTRATOR, PolicyName="one")
    iam.answer(changes, "iam", "CreateAccessKey", UserName=ADMINISTRATOR)

    assert changes.policies(("user", ADMINISTRATOR), iam.policies) == ["one"]
    assert not changes.is_unknown("AKIA1")


@pytest.mark.parametrize("action", ["GetUserPolicy", "ListUserPolicies", "CreateAccessKey", "CreatePolicy"])
def test_calls_that_change_no_principals_policies_delay_nothing(changes, iam, action):
    iam.answer(changes, "iam", action, PolicyName="one", **({} if action == "CreatePolicy" else {"UserName": "x"}))

    assert changes.policies(("user", "x"), ["now"]) == ["now"]


def test_a_refused_change_delays_nothing(changes, iam):
    iam.status = 400
    iam.answer(changes, "iam", "PutUserPolicy", UserName="x", PolicyName="one")
    iam.answer(changes, "iam", "CreateAccessKey", UserName="x")

    assert changes.policies(("user", "x"), ["now"]) == ["now"]
    assert not changes.is_unknown("AKIA1")


def test_other_services_delay_nothing(changes, iam):
    iam.answer(changes, "sqs", "PutUserPolicy", UserName="x", PolicyName="one")

    assert changes.policies(("user", "x"), ["now"]) == ["now"]
