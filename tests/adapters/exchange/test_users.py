"""Users in IAM and SQS: created, changed, given keys and deleted."""

import json
from dataclasses import replace
from datetime import timedelta

import boto3
import pytest

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.exchange.user_control_queues import USER_TAG, ControlQueueUnread
from signalbox.aws.exchange.users import ExchangeUsers, UserTaken, register
from signalbox.aws.shared.managed_queues import ForeignQueue
from signalbox.errors import EffectRefused
from signalbox.exchange.model.records import User
from signalbox.sarracenia.rights.names import InvalidUserName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.adapters.shared.stubs import ARNS, KEY, URLS, attributes_of, function, tags_of
from tests.fakes.clock import START

ALICE = UserName("alice")
CONTROL, OWN = "signalbox-exchange-control", "signalbox-exchange-control-alice"
OUTPUTS = {"ExchangeControlQueueUrl": URLS + CONTROL, "ExchangePrefix": "sr-"}
TAGS = {"signalbox:stage": "signalbox", "signalbox:capability": "exchange", "signalbox:user": "alice"}


@pytest.fixture
def users(sqs) -> ExchangeUsers:
    """Return a stage with a control queue that the function `control` consumes."""
    sqs.create_queue(QueueName="dead")
    redrive = json.dumps({"deadLetterTargetArn": f"{ARNS}dead", "maxReceiveCount": 5})
    settings = {"VisibilityTimeout": "40", "MessageRetentionPeriod": "3600", "KmsMasterKeyId": KEY}
    sqs.create_queue(QueueName=CONTROL, Attributes={**settings, "RedrivePolicy": redrive})
    boto3.client("lambda").create_event_source_mapping(
        EventSourceArn=ARNS + CONTROL,
        FunctionName=function("control"),
        BatchSize=1,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        ScalingConfig={"MaximumConcurrency": 7},
    )
    return ExchangeUsers.of(boto3.Session(), OUTPUTS)


def make(users: ExchangeUsers, role: Role = Role.SOURCE) -> str:
    return users.make(ALICE, role, Ownership.STRICT)


def policy(iam) -> str:
    return json.dumps(iam.get_user_policy(UserName="signalbox_alice", PolicyName="exchange")["PolicyDocument"])


def keys(iam) -> list[str]:
    return [key["AccessKeyId"] for key in iam.list_access_keys(UserName="signalbox_alice")["AccessKeyMetadata"]]


def mappings(users: ExchangeUsers, queue: str = OWN) -> list[dict]:
    found = users.control_queues.functions.list_event_source_mappings(EventSourceArn=ARNS + queue)
    return [one for one in found["EventSourceMappings"] if one["State"] != "Deleting"]


def test_a_user_has_an_identity_with_a_policy_and_no_key(users: ExchangeUsers) -> None:
    user_id = make(users)

    found = users.iam.get_user(UserName="signalbox_alice")["User"]
    assert (found["UserId"], found["Path"]) == (user_id, "/signalbox/")
    assert {tag["Key"]: tag["Value"] for tag in found["Tags"]} == TAGS
    assert f'"{ARNS}sr-xs_alice.fifo"' in policy(users.iam)
    assert KEY in policy(users.iam)
    assert keys(users.iam) == []


def test_a_boundary_of_the_stage_bounds_a_new_user(users: ExchangeUsers) -> None:
    settings = json.dumps({"permissions_boundary": "limits"})
    bounded, created = ExchangeUsers.of(boto3.Session(), {**OUTPUTS, "Settings": settings}), []
    # moto does not return the boundary of a user.
    bounded.iam.meta.events.register(
        "before-parameter-build.iam.CreateUser", lambda params, **_: created.append(params)
    )

    make(bounded)

    assert [one["PermissionsBoundary"] for one in created] == ["arn:aws:iam::123456789012:policy/limits"]


def test_a_users_control_queue_is_like_that_of_the_administrators(users: ExchangeUsers, sqs) -> None:
    make(users)

    of_all, own = attributes_of(sqs, CONTROL), attributes_of(sqs, OWN)
    same = ("VisibilityTimeout", "MessageRetentionPeriod", "KmsMasterKeyId")
    assert [own[name] for name in same] == [of_all[name] for name in same]
    assert "RedrivePolicy" not in own
    assert json.loads(own["Policy"])["Statement"][0]["Effect"] == "Deny"
    assert tags_of(sqs, OWN) == TAGS


def test_a_user_has_a_reply_queue_whose_messages_expire_soon(users: ExchangeUsers, sqs) -> None:
    make(users)

    replies = attributes_of(sqs, "signalbox-exchange-reply-alice")
    assert (replies["MessageRetentionPeriod"], replies["VisibilityTimeout"]) == ("60", "2")
    assert replies["KmsMasterKeyId"] == KEY
    assert tags_of(sqs, "signalbox-exchange-reply-alice") == TAGS


def test_missing_reply_queues_are_made_after_one_look_at_that_of_the_administrators(users: ExchangeUsers, sqs) -> None:
    looks: list[str] = []
    calls = users.control_queues.sqs.meta.events
    calls.register("before-parameter-build.sqs.GetQueueAttributes", lambda **_: looks.append("look"))

    assert [users.control_queues.make_reply_queues([ALICE, UserName("bob")], TAGS) for _ in range(2)] == [{}, {}]

    assert tags_of(sqs, "signalbox-exchange-reply-alice") == TAGS
    assert tags_of(sqs, "signalbox-exchange-reply-bob") == TAGS | {USER_TAG: "bob"}
    assert len(looks) == 2


def test_a_reply_queue_that_cannot_be_made_does_not_stop_the_others(users: ExchangeUsers, sqs) -> None:
    sqs.create_queue(QueueName="signalbox-exchange-reply-alice", tags={"owner": "somebody"})

    failed = users.control_queues.make_reply_queues([ALICE, UserName("bob")], TAGS)

    assert list(failed) == [ALICE]
    assert "is not managed by this stage" in failed[ALICE]
    assert tags_of(sqs, "signalbox-exchange-reply-bob") == TAGS | {USER_TAG: "bob"}


def test_the_same_function_reads_it_with_two_commands_at_a_time(users: ExchangeUsers) -> None:
    make(users)

    (of_all,), (own,) = mappings(users, CONTROL), mappings(users)
    same = ("FunctionArn", "BatchSize", "FunctionResponseTypes")
    assert [own[name] for name in same] == [of_all[name] for name in same]
    assert own["ScalingConfig"] == {"MaximumConcurrency": 2}


def test_made_again_a_user_has_another_role_and_nothing_twice(users: ExchangeUsers) -> None:
    first = make(users)

    assert make(users, Role.SUBSCRIBER) == first
    assert "sr-xs_alice_*" not in policy(users.iam)
    assert len(mappings(users)) == 1


def test_a_control_queue_follows_the_administrators(users: ExchangeUsers, sqs) -> None:
    make(users)
    sqs.set_queue_attributes(QueueUrl=URLS + CONTROL, Attributes={"VisibilityTimeout": "60"})

    make(users)

    assert attributes_of(sqs, OWN)["VisibilityTimeout"] == "60"


def test_a_user_whose_control_queue_has_no_valid_name_is_refused(users: ExchangeUsers, sqs) -> None:
    stage = "a-stage-with-a-name-of-no-less-than-40-x"
    queues = replace(users.control_queues, administrators_url=f"{URLS}{stage}-exchange-control")

    with pytest.raises(InvalidUserName, match="choose a shorter name"):
        replace(users, control_queues=queues).make(UserName("u" * 32), Role.SOURCE, Ownership.STRICT)

    assert users.iam.list_users()["Users"] == []


def test_a_user_has_a_key_or_none(users: ExchangeUsers) -> None:
    make(users)
    assert not users.has_key(ALICE)

    users.new_key(ALICE)
    assert users.has_key(ALICE)


def test_a_registered_user_has_an_identity_and_a_record(users: ExchangeUsers, exchange_table) -> None:
    records = DynamoUsers(exchange_table)

    registered = register(users, records, ALICE, role=Role.SOURCE, now=START)

    user_id = users.iam.get_user(UserName="signalbox_alice")["User"]["UserId"]
    assert registered == User(ALICE, Role.SOURCE, Ownership.STRICT, START, user_id)
    assert records.find(ALICE) == registered


def test_a_user_registered_again_has_another_role_and_the_same_age_and_identity(
    users: ExchangeUsers, exchange_table
) -> None:
    records = DynamoUsers(exchange_table)
    first = register(users, records, ALICE, role=Role.SOURCE, now=START)

    again = register(users, records, ALICE, role=Role.ADMIN, ownership=Ownership.LOOSE, now=START + timedelta(days=1))

    assert again == replace(first, role=Role.ADMIN, ownership=Ownership.LOOSE)
    assert records.find(ALICE) == again


def test_a_new_key_leaves_the_one_before_it_in_force(users: ExchangeUsers) -> None:
    make(users)

    made = [users.new_key(ALICE).access_key_id for _ in range(3)]

    assert sorted(keys(users.iam)) == sorted(made[1:])


def test_a_secret_is_not_in_the_representation_of_a_key(users: ExchangeUsers) -> None:
    make(users)

    key = users.new_key(ALICE)

    assert key.secret_access_key
    assert key.secret_access_key not in repr(key)


def test_a_missing_user_gets_no_key(users: ExchangeUsers) -> None:
    with pytest.raises(EffectRefused, match="NoSuchEntity"):
        users.new_key(ALICE)


def test_removing_a_user_removes_everything(users: ExchangeUsers, sqs) -> None:
    make(users)
    users.new_key(ALICE)

    for _ in range(2):
        users.remove(ALICE)

    assert users.iam.list_users()["Users"] == []
    assert mappings(users) == []
    assert sqs.list_queues(QueueNamePrefix=OWN).get("QueueUrls", []) == []
    assert sqs.list_queues(QueueNamePrefix="signalbox-exchange-reply-").get("QueueUrls", []) == []
    assert len(mappings(users, CONTROL)) == 1


@pytest.mark.parametrize("what", ["make", "remove"])
def test_a_foreign_identity_is_not_changed(users: ExchangeUsers, what: str) -> None:
    users.iam.create_user(UserName="signalbox_alice")

    with pytest.raises(UserTaken, match="not user 'alice' of this stage"):
        make(users) if what == "make" else users.remove(ALICE)

    assert users.iam.list_user_policies(UserName="signalbox_alice")["PolicyNames"] == []


def test_a_foreign_queue_is_not_deleted(users: ExchangeUsers, sqs) -> None:
    sqs.create_queue(QueueName=OWN, Attributes={"VisibilityTimeout": "7"})

    with pytest.raises(ForeignQueue):
        make(users)

    assert mappings(users) == []


def test_without_anything_that_reads_commands_there_are_no_users(users: ExchangeUsers, sqs) -> None:
    (found,) = mappings(users, CONTROL)
    users.control_queues.functions.delete_event_source_mapping(UUID=found["UUID"])

    with pytest.raises(ControlQueueUnread, match="no function reads"):
        make(users)
    assert sqs.list_queues(QueueNamePrefix=OWN).get("QueueUrls", []) == []


def test_what_an_earlier_user_left_is_found_with_its_dead_letters(users: ExchangeUsers, sqs) -> None:
    own = ["sr-q_alice", "sr-q_alice-dlq", "sr-q_alice_a", "sr-xs_alice-dlq", "sr-xs_alice.fifo"]
    for name in (*own, "sr-q_alice2", "sr-xs_bob-dlq", "q_alice"):
        sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if name.endswith(".fifo") else {})

    assert users.owned([ALICE], Ownership.STRICT) == own
    assert users.owned([ALICE, UserName("bob")], Ownership.STRICT) == [*own, "sr-xs_bob-dlq"]
