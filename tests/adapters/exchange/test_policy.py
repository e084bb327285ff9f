"""The IAM policies of users: they permit exactly the names of the role, within IAM's size limit."""

from fnmatch import fnmatchcase

import pytest

from signalbox.aws.exchange.policy import CONSUME, PUBLISH, ExchangeLocation, policy_text, user_policy
from signalbox.exchange.model.names import StageNames, dead_letter_name
from signalbox.sarracenia.rights.names import UserName, sqs_name
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role, is_permitted
from tests.adapters.shared.stubs import ARNS, KEY

ALICE = UserName("alice")
PLACE = ExchangeLocation(StageNames("signalbox", "sr-"), ARNS, KEY)
EXCHANGES = (
    *("xpublic", "xalert_public", "xs_alice", "xs_alice.fifo", "xs_alice_images", "xs_alice_images.fifo", "xs_alice2"),
    *("xs_alicex.fifo", "xs_alice-b", "xs_bob", "xs_bob_alice", "xl_alice", "xr_alice"),
)
QUEUES = (
    *("q_alice", "q_alice.fifo", "q_alice.subscribe.weather.alice_host_12345678", "q_alice_images", "q_alice.x.fifo"),
    *("q_alice2", "q_alice2.subscribe", "q_alice-b", "q_bob", "q_bob.alice", "q_alice." + "x" * 200, "q_alicé.x"),
)
# The account may have any other queues.
OTHERS = (
    *("signalbox-exchange-control", "signalbox-exchange-control-bob", "signalbox-exchange-control-alice2"),
    *("signalbox-exchange-reply-bob", "signalbox-exchange-reply-alice2", "signalbox-exchange-reply"),
    *("signalbox-exchange-retries", "snowflake-broker", "orders", "xs_alice", "q_alice", "sr-other"),
)
every_user = pytest.mark.parametrize("role", Role)
every_rule = pytest.mark.parametrize("ownership", Ownership)


def allows(policy: dict, action: str, queue: str) -> bool:
    """Evaluate a policy of allow statements, as IAM does."""
    return any(
        action in statement["Action"] and any(fnmatchcase(ARNS + queue, pattern) for pattern in statement["Resource"])
        for statement in policy["Statement"]
    )


def policy_of(role: Role, ownership: Ownership = Ownership.STRICT) -> dict:
    return dict(user_policy(ALICE, role, ownership, PLACE))


@every_user
@every_rule
@pytest.mark.parametrize("name", EXCHANGES)
def test_a_user_publishes_to_the_exchanges_that_the_name_permits(role: Role, ownership: Ownership, name: str) -> None:
    queue, policy = sqs_name(name, prefix="sr-"), policy_of(role, ownership)
    expected = is_permitted(ALICE, role, Right.WRITE, name=name, ownership=ownership)

    assert {allows(policy, action, queue) for action in PUBLISH} == {expected}
    assert not any(allows(policy, action, queue) for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage"))


@every_user
@every_rule
@pytest.mark.parametrize("name", QUEUES)
def test_a_user_consumes_the_queues_that_the_name_permits(role: Role, ownership: Ownership, name: str) -> None:
    queue, policy = sqs_name(name, prefix="sr-"), policy_of(role, ownership)
    expected = is_permitted(ALICE, role, Right.READ, name=name, ownership=ownership)

    assert {allows(policy, action, queue) for action in CONSUME} == {expected}
    assert not allows(policy, "sqs:SendMessage", queue)


@every_user
@every_rule
@pytest.mark.parametrize("name", [*EXCHANGES, *QUEUES])
def test_a_user_reads_the_dead_letters_of_what_is_the_users_own(role: Role, ownership: Ownership, name: str) -> None:
    dead, policy = dead_letter_name(sqs_name(name, prefix="sr-")), policy_of(role, ownership)
    expected = is_permitted(ALICE, role, Right.CONFIGURE, name=name, ownership=ownership)

    assert {allows(policy, action, dead) for action in CONSUME} == {expected}


@every_user
@every_rule
@pytest.mark.parametrize("queue", OTHERS)
def test_nothing_else_of_the_account_is_touched(role: Role, ownership: Ownership, queue: str) -> None:
    policy = policy_of(role, ownership)

    assert not any(allows(policy, action, queue) for action in (*PUBLISH, *CONSUME, "sqs:CreateQueue"))


@every_user
def test_a_user_may_use_the_own_control_queue_and_reply_queue(role: Role) -> None:
    control, reply = "signalbox-exchange-control-alice", "signalbox-exchange-reply-alice"
    policy = policy_of(role)

    assert {allows(policy, action, control) for action in PUBLISH} == {True}
    assert not allows(policy, "sqs:ReceiveMessage", control)
    for action in ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueUrl"):
        assert allows(policy, f"sqs:{action}", reply)
    assert not allows(policy, "sqs:SendMessage", reply)


@every_user
@every_rule
def test_a_user_makes_changes_and_deletes_no_queues(role: Role, ownership: Ownership) -> None:
    actions = {action for statement in policy_of(role, ownership)["Statement"] for action in statement["Action"]}

    assert not {action for action in actions if action.startswith(("sqs:Create", "sqs:Set", "sqs:Tag", "sqs:DeleteQ"))}
    assert not {"sqs:AddPermission", "sqs:StartMessageMoveTask"} & actions


@every_user
def test_the_key_is_used_through_sqs_only(role: Role) -> None:
    (statement,) = [one for one in policy_of(role)["Statement"] if one["Resource"] == [KEY]]

    assert statement["Action"] == ["kms:GenerateDataKey", "kms:Decrypt"]
    assert statement["Condition"] == {"StringEquals": {"kms:ViaService": "sqs.us-east-1.amazonaws.com"}}


@every_user
@every_rule
def test_every_policy_fits_into_what_iam_takes(role: Role, ownership: Ownership) -> None:
    """IAM allows 2,048 characters of inline policies of a user."""
    arns = "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:"
    key = "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/" + "0" * 36
    location = ExchangeLocation(StageNames("s" * 30, "p" * 40), arns, key)

    assert len(policy_text(user_policy(UserName("u" * 32), role, ownership, location))) <= 2048
