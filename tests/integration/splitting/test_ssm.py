"""Users share the queues that an SSM parameter names: those of a topic, whose messages one of them follows."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.flows.consumer import LocalConsumer
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import QueueName
from tests.integration.live.page import Running, WorkingFolder
from tests.integration.splitting.consumer_processes import ConsumerProcesses, consumer_processes
from tests.integration.splitting.sessions import Users
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

PARAMETER = "demo-news-queues"
TARGET = f"ssm/{PARAMETER}"
ENVELOPES, RAW = QueueName("demo-news-in-envelopes"), QueueName("demo-news-raw")
QUEUES = {"envelopes": ENVELOPES, "raw": RAW}
MESSAGES = 5
END_SECONDS = 240
REGISTRY = [
    {
        "apiVersion": "mirrord.metalbear.co/v1",
        "kind": "MirrordPropertyList",
        "metadata": {"name": "notifications"},
        "spec": {"properties": [{"name": "sns", "value": "true"}]},
    },
    {
        "apiVersion": "queues.mirrord.metalbear.co/v1",
        "kind": "MirrordSplitConfig",
        "metadata": {"name": "news"},
        "spec": {
            "targetRef": {"kind": "SsmParameter", "name": PARAMETER},
            "queues": [
                {
                    "id": queue_id,
                    "kind": "sqs",
                    "appConfig": {"queue": [{"env": "NEWS_QUEUES", "valueSelector": f".{queue_id}"}]},
                    **({"queueConfig": "notifications"} if queue_id == "envelopes" else {}),
                }
                for queue_id in QUEUES
            ],
        },
    },
]


@pytest.fixture
def processes(deployment: Deployment, deployed: dict[str, Any], tmp_path: Path) -> Iterator[ConsumerProcesses]:
    with consumer_processes(deployment, deployed, tmp_path, parameters=[PARAMETER]) as found:
        yield found


@pytest.fixture
def topic(deployment: Deployment, processes: ConsumerProcesses) -> str:
    """A topic to which both queues are subscribed; a process reads the queues that the parameter names."""
    sqs, sns = (deployment.session().client(name) for name in ("sqs", "sns"))
    arn = str(sns.create_topic(Name="demo-news")["TopicArn"])
    for name in QUEUES.values():
        url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "60"})["QueueUrl"]
        queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy(queue, topic=arn)})
        raw = {"RawMessageDelivery": "true"} if name == RAW else {}
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue, Attributes=raw)
    put_parameter(deployment)
    processes.start("news", {"PARAMETER": PARAMETER})
    return arn


def policy(queue: str, *, topic: str) -> str:
    """Return a queue's policy that lets a topic send messages to it."""
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


def put_parameter(deployment: Deployment) -> None:
    ssm = deployment.session().client("ssm")
    ssm.put_parameter(Name=PARAMETER, Value=json.dumps(QUEUES), Type="String", Description="by a test", Overwrite=True)


def test_users_share_the_queues_of_a_topic_and_follow_them(
    deployment: Deployment, stage_folder: StageFolder, processes: ConsumerProcesses, topic: str, tmp_path: Path
):
    users = Users(deployment, TARGET)
    users.apply(*REGISTRY)
    before = parameter(deployment)
    folder = WorkingFolder.at(tmp_path, stage_folder)
    tail = (
        "split",
        "tail",
        "--target",
        TARGET,
        "--filter",
        "author=^(ann|bob)$",
        "--json",
        "--count",
        str(4 * MESSAGES),
    )

    with users.session("ann", {"*": {"message_filter": {"author": "^ann$"}}}) as ann:
        reader = LocalConsumer(deployment.session(), [queue.url for queue in ann.queues])
        own = {queue.temporary: queue.queue_id for queue in ann.queues}
        with folder.running("tail", *tail, ends=True) as followed, reader.reading():
            wait_for(lambda: phases(users) == {"ready": 2}, "both sessions are ready", seconds=END_SECONDS)
            during = {name: queue_id for queue_id, name in json.loads(parameter(deployment)["Value"]).items()}
            for number in range(MESSAGES):
                publish(deployment, topic, "ann", "bob", "others", number=number)
            wait_for(lambda: received(reader, own) == by("ann"), "all messages of ann", seconds=END_SECONDS)
            wait_for(lambda: read(processes, during) == by("bob", "others"), "the others", seconds=END_SECONDS)
            wait_for(lambda: copies(followed) == by("ann", "bob"), "the copies", seconds=END_SECONDS)
    users.wait_until_over()
    publish(deployment, topic, "ann", number=0)
    originals = {name: queue_id for queue_id, name in QUEUES.items()}
    wait_for(lambda: read(processes, originals), "the originals are read again", seconds=END_SECONDS)

    assert received(reader, own) == by("ann")
    assert read(processes, during) == by("bob", "others")
    assert copies(followed) == by("ann", "bob")
    assert json.loads(ann.environment["NEWS_QUEUES"]) == {one.queue_id: one.temporary for one in ann.queues}
    assert unversioned(parameter(deployment)) == unversioned(before)
    assert users.temporary_queues() == []


def publish(deployment: Deployment, topic: str, *authors: str, number: int) -> None:
    sns = deployment.session().client("sns")
    for author in authors:
        attributes = {"author": {"DataType": "String", "StringValue": author}}
        sns.publish(TopicArn=topic, Message=f"{number} by {author}", MessageAttributes=attributes)


def by(*authors: str) -> set[tuple[str, str]]:
    """Return the queue id and the text of each message of these authors; a standard queue may repeat one."""
    return {
        (queue_id, f"{number} by {author}") for queue_id in QUEUES for author in authors for number in range(MESSAGES)
    }


def received(reader: LocalConsumer, names: Mapping[str, str]) -> set[tuple[str, str]]:
    return {(names[one.queue], text(one.body)) for one in reader.received}


def copies(tail: Running) -> set[tuple[str, str]]:
    return {(one["queue_id"], text(one["message"]["Body"])) for one in tail.results}


def read(processes: ConsumerProcesses, names: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return the messages that the processes have read in these queues."""
    return {(names[name], text(body)) for name, body in processes.received() if name in names}


def phases(users: Users) -> Counter[str]:
    return Counter(session["phase"] for split in users.splits() for session in split["sessions"])


def text(body: str) -> str:
    """Return the text of a message, which may be within a notification."""
    return str(json.loads(body)["Message"]) if body.startswith("{") else body


def parameter(deployment: Deployment) -> dict[str, Any]:
    ssm = deployment.session().client("ssm")
    return dict(ssm.get_parameter_history(Name=PARAMETER)["Parameters"][-1])


def unversioned(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("Version", "LastModifiedDate")}
