"""Hostile filters on a stage: each ends its own session, and the messages of others arrive at once and in order."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.clients.splitting.heartbeats import HeartbeatThread
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.queues import QueueName
from tests.integration.splitting.sessions import END_SECONDS, START_TIMEOUT, Users
from tests.patience import wait_for

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

pytestmark = [pytest.mark.emulator, pytest.mark.release]

QUEUE, DEAD = QueueName("demo-hostile.fifo"), QueueName("demo-hostile-dead.fifo")
PARAMETER = "demo-hostile-queue"
TARGET = f"ssm/{PARAMETER}"
REGISTRY = {
    "apiVersion": "queues.mirrord.metalbear.co/v1alpha",
    "kind": "MirrordWorkloadQueueRegistry",
    "metadata": {"name": "hostile"},
    "spec": {
        "consumer": {"workloadType": "SsmParameter", "name": PARAMETER},
        "queues": {"q": {"queueType": "SQS", "nameSource": {"envVar": "QUEUE"}}},
    },
}
# A message that is received a second time arrives after this time; a third receive makes it a dead letter.
VISIBILITY_SECONDS = 30
# Each is harmless until its own turn, whose message has its name as its body and in an attribute.
HOSTILE: dict[str, dict[str, object]] = {
    "endless": {"jq_filter": 'if .Body == "endless" then last(range(1e12)) else false end'},
    "memory": {"jq_filter": 'if .Body == "memory" then [range(1e12)] else false end'},
    "stack": {"jq_filter": 'def f: [f]; if .Body == "stack" then f else false end'},
    "pattern": {"message_filter": {"turn": r"^(?=pattern)\w+:(?<!x)(a|aa)+\1$"}},
    "parts": {"filter": {"any_of": [{"metadata": rf"(?=turn: parts)\w+: \w+:(a|aa)+(?<!{n})\1$"} for n in range(9)]}},
}


@pytest.fixture
def url(deployment: Deployment) -> str:
    sqs = deployment.session().client("sqs")
    dead = sqs.create_queue(QueueName=DEAD, Attributes={"FifoQueue": "true"})["QueueUrl"]
    redrive = {"deadLetterTargetArn": arn_of(sqs, dead), "maxReceiveCount": "2"}
    attributes: Mapping[QueueAttributeNameType, str] = {
        "FifoQueue": "true",
        "VisibilityTimeout": str(VISIBILITY_SECONDS),
        "RedrivePolicy": json.dumps(redrive),
    }
    deployment.session().client("ssm").put_parameter(Name=PARAMETER, Value=QUEUE, Type="String", Overwrite=True)
    return str(sqs.create_queue(QueueName=QUEUE, Attributes=attributes)["QueueUrl"])


def arn_of(sqs: "SQSClient", url: str) -> str:
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(found["Attributes"]["QueueArn"])


def test_sessions_that_are_hostile_in_turns_end_alone(deployment: Deployment, url: str) -> None:
    users = Users(deployment, TARGET)
    users.apply(REGISTRY)
    refused = users.refusal("refused", {"q": {"message_filter": {"who": "(?R)^b$"}}})
    ended: dict[str, str] = {}

    with users.session("bob", {"q": {"message_filter": {"author": "^bob$"}}}) as bob, ExitStack() as held:
        for name, entry in HOSTILE.items():
            held.enter_context(hostile_session(users, name, entry))
        (deployed,) = (queue["deployed"] for split in users.splits() for queue in split["queues"])
        bobs, others = Reader(deployment, bob.queues[0].temporary), Reader(deployment, deployed)
        for turn in HOSTILE:
            started = time.monotonic()
            send(deployment, url, turn)
            bobs.read(5)
            others.read(2)
            assert time.monotonic() - started < VISIBILITY_SECONDS / 2
            ended[turn] = wait_for(partial(reason_of, users, turn), f"{turn} ends", seconds=END_SECONDS)
    users.wait_until_over()

    assert "not a regular expression" in refused
    assert bobs.bodies == [f"{turn} {number}" for turn in HOSTILE for number in range(5)]
    assert others.bodies == [body for turn in HOSTILE for body in (turn, f"{turn} is over")]
    assert {name: reason.partition(":")[0] for name, reason in ended.items()} == dict.fromkeys(
        HOSTILE, "filter stopped"
    )
    assert Reader(deployment, DEAD).is_empty()


@contextmanager
def hostile_session(users: Users, name: str, entry: dict[str, object]) -> Iterator[None]:
    """Have a session that the stage ends."""
    with users.control() as control:
        client = SessionClient(control, SessionRequest(TARGET, name, f"{name}@laptop", config_of(entry)))
        client.start(timeout=START_TIMEOUT)
        with HeartbeatThread(client, print).running():
            yield


def config_of(entry: dict[str, object]) -> dict[str, object]:
    return {"feature": {"split_queues": {"q": {"queue_type": "SQS", **entry}}}}


def reason_of(users: Users, name: str) -> str | None:
    """Return the reason for which a session is ending."""
    sessions = (session for split in users.splits() for session in split["sessions"])
    return next((one["reason"] for one in sessions if one["session"] == name and one["phase"] == "ending"), None)


def send(deployment: Deployment, url: str, turn: str) -> None:
    """Send the message that makes a session hostile, among five of bob and before one that no session claims."""
    sqs = deployment.session().client("sqs")
    bodies = [f"{turn} 0", turn, *(f"{turn} {number}" for number in range(1, 5)), f"{turn} is over"]
    for body in bodies:
        author = "bob" if body[-1].isdigit() else "nobody"
        value = f"{turn}:{'a' * 60}!" if body == turn else body
        sqs.send_message(
            QueueUrl=url,
            MessageBody=body,
            MessageGroupId="g",
            MessageDeduplicationId=body.replace(" ", "-"),
            MessageAttributes={
                "author": {"DataType": "String", "StringValue": author},
                "turn": {"DataType": "String", "StringValue": value},
            },
        )


class Reader:
    """Reads a queue in order."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self.sqs = deployment.session().client("sqs")
        self.url = self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        self.bodies: list[str] = []

    def read(self, count: int) -> None:
        """Read and delete messages."""
        end = len(self.bodies) + count
        wait_for(lambda: self._has_read(end), f"{count} messages", seconds=END_SECONDS)

    def _has_read(self, end: int) -> bool:
        found = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=1, WaitTimeSeconds=1)
        for message in found.get("Messages", []):
            self.bodies.append(message["Body"])
            self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return len(self.bodies) >= end

    def is_empty(self) -> bool:
        """Return whether the queue has no message."""
        return "Messages" not in self.sqs.receive_message(QueueUrl=self.url, WaitTimeSeconds=1)
