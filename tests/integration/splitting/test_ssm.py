"""Users share the queues that an SSM parameter names: those of a topic, whose messages one of them follows."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signalbox.cli.shared.deployment import Deployment
from signalbox.local.demo.consumer import LocalConsumer
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import QueueName
from tests.integration.live.page import WorkingFolder
from tests.integration.splitting.consumer_processes import ConsumerProcesses, consumer_processes
from tests.integration.splitting.sessions import Users
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

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
        url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "6"})["QueueUrl"]
        queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        raw = {"RawMessageDelivery": "true"} if name == RAW else {}
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue, Attributes=raw)
    put_parameter(deployment)
    processes.start("news", {"PARAMETER": PARAMETER})
    return arn


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
    tail = ("split", "tail", "--target", TARGET, "--filter", "author=^(ann|bob)$", "--json")

    with users.session("ann", {"*": {"message_filter": {"author": "^ann$"}}}) as ann:
        reader = LocalConsumer(deployment.session(), [queue.url for queue in ann.queues])
        with folder.running("tail", *tail) as followed, reader.reading():
            wait_for(lambda: phases(users) == {"ready": 2}, "both sessions are ready", seconds=END_SECONDS)
            publish(deployment, topic, ["ann", "bob", "others"] * MESSAGES)
            wait_for(lambda: len(reader.received) >= 2 * MESSAGES, "all messages of ann", seconds=END_SECONDS)
            wait_for(lambda: len(processes.bodies()) >= 4 * MESSAGES, "the others", seconds=END_SECONDS)
            wait_for(lambda: len(followed.said.splitlines()) >= 4 * MESSAGES, "the copies", seconds=END_SECONDS)
            copies = [json.loads(line) for line in followed.said.splitlines()]
            during = json.loads(parameter(deployment)["Value"])
    wait_for(lambda: not users.splits(), "the split is over", seconds=END_SECONDS)
    publish(deployment, topic, ["ann"])
    originals = {(ENVELOPES, "by ann"), (RAW, "by ann")}
    wait_for(lambda: originals <= set(texts(processes)), "the originals are read again", seconds=END_SECONDS)

    assert Counter(text(one.body) for one in reader.received) == {"by ann": 2 * MESSAGES}
    assert Counter((one["queue_id"], text(one["message"]["Body"])) for one in copies) == {
        (queue_id, f"by {author}"): MESSAGES for queue_id in QUEUES for author in ("ann", "bob")
    }
    assert Counter(texts(processes)) == {
        **{(during[queue_id], f"by {author}"): MESSAGES for queue_id in QUEUES for author in ("bob", "others")},
        **dict.fromkeys(originals, 1),
    }
    assert json.loads(ann.environment["NEWS_QUEUES"]) == {one.queue_id: one.temporary for one in ann.queues}
    assert unversioned(parameter(deployment)) == unversioned(before)
    assert users.temporary_queues() == []


def publish(deployment: Deployment, topic: str, authors: list[str]) -> None:
    sns = deployment.session().client("sns")
    for author in authors:
        attributes = {"author": {"DataType": "String", "StringValue": author}}
        sns.publish(TopicArn=topic, Message=f"by {author}", MessageAttributes=attributes)


def phases(users: Users) -> Counter[str]:
    return Counter(session["phase"] for split in users.splits() for session in split["sessions"])


def text(body: str) -> str:
    """Return the text of a message, which may be within a notification."""
    return str(json.loads(body)["Message"]) if body.startswith("{") else body


def texts(processes: ConsumerProcesses) -> list[tuple[QueueName, str]]:
    return [(name, text(body)) for name, body in processes.received()]


def parameter(deployment: Deployment) -> dict[str, Any]:
    ssm = deployment.session().client("ssm")
    return dict(ssm.get_parameter_history(Name=PARAMETER)["Parameters"][-1])


def unversioned(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("Version", "LastModifiedDate")}
