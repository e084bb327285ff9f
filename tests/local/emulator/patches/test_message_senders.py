"""A message has the id of its sender, for receivers and in the events of functions."""

import json
import time

import pytest

from signalbox.clients.stage_session import LocalSession
from signalbox.local.emulator.patches.message_senders import with_senders, with_senders_in_events
from tests.local.emulator.functions import ANYTHING, make_function

FORWARD_SENDERS = (
    "import boto3, os\n"
    "def handler(event, context):\n"
    "    for record in event['Records']:\n"
    "        sender = record['attributes']['SenderId']\n"
    "        boto3.client('sqs').send_message(QueueUrl=os.environ['TARGET'], MessageBody=sender)\n"
)


@pytest.mark.parametrize(
    ("caller", "sender"),
    [
        ("arn:aws:iam::000000000000:user/signalbox/dev_alice", "AIDA1"),
        ("arn:aws:iam::000000000000:user/dev_alice", "AIDA1"),
        ("arn:aws:iam::000000000000:user/unknown", "000000000000"),
        ("arn:aws:iam::000000000000:root", "000000000000"),
        ("arn:aws:sts::000000000000:assumed-role/dev_control/control", "AROA1:control"),
        ("arn:aws:sts::000000000000:assumed-role/dev_alice/session", "000000000000"),
    ],
    ids=["user with a path", "user", "unknown user", "root", "session of a role", "role with a user's name"],
)
def test_the_sender_id_is_the_callers(caller, sender):
    def build(now, given):
        return {"SenderId": "000000000000", "SentTimestamp": now, **given}

    users, roles = {"dev_alice": "AIDA1"}, {"dev_control": "AROA1"}
    built = with_senders(build, lambda: caller, user_id=users.get, role_id=roles.get)

    assert built("1", {"AWSTraceHeader": "x"}) == {"SenderId": sender, "SentTimestamp": "1", "AWSTraceHeader": "x"}


def test_an_event_has_the_sender_of_each_message():
    batch = [{"id": "1", "sys": {"SenderId": "AIDA1"}}, {"id": "2"}]
    event = {"Records": [{"messageId": one["id"], "attributes": {"SenderId": "000000000000"}} for one in batch]}
    run = with_senders_in_events(lambda _mapping, _function, event, _batch, queue: (event, queue))

    changed, queue = run("mapping", "function", event, batch, "queue")

    assert [record["attributes"]["SenderId"] for record in changed["Records"]] == ["AIDA1", "000000000000"]
    assert queue == "queue"


@pytest.mark.emulator
@pytest.mark.release
def test_a_users_message_has_the_users_id_for_receivers_and_for_functions(running):
    session = running.session()
    sqs = session.client("sqs")
    source, target = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("senders-in", "senders-out"))
    user_id, user = _make_user(running, "sender")

    user.client("sqs").send_message(QueueUrl=source, MessageBody="one")
    received = sqs.receive_message(QueueUrl=source, AttributeNames=["SenderId"], VisibilityTimeout=0)["Messages"]
    assert received[0]["Attributes"]["SenderId"] == user_id

    make_function(session, "senders", FORWARD_SENDERS, TARGET=target)
    arn = sqs.get_queue_attributes(QueueUrl=source, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    session.client("lambda").create_event_source_mapping(EventSourceArn=arn, FunctionName="senders")
    assert _first_body(sqs, target) == user_id


def _make_user(running, name):
    iam = running.session().client("iam")
    user = iam.create_user(UserName=name)["User"]
    iam.put_user_policy(UserName=name, PolicyName="anything", PolicyDocument=json.dumps(ANYTHING))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    session = LocalSession(
        running.endpoint_url,
        region="us-east-1",
        access_key_id=key["AccessKeyId"],
        secret_access_key=key["SecretAccessKey"],
    )
    return user["UserId"], session


def _first_body(sqs, url, *, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for message in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages", []):
            return message["Body"]
    return None
