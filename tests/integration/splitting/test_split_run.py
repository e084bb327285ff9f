"""`signalbox split run` in a terminal: a command shares the queue of a deployed consumer until Ctrl-C."""

import json
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.flows.consumer import DeployedConsumer, variable_of
from signalbox.local.files import CHECKOUT
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import QueueName
from tests.integration.live.page import PROGRAM, WorkingFolder
from tests.integration.splitting.sessions import Users
from tests.patience import wait_for
from tests.terminals import CTRL_C, INTERRUPTED, terminal

pytestmark = pytest.mark.emulator

QUEUE = QueueName("demo-memes-of-a-command")
CONSUMER = "demo-consumer-and-a-command"
BUCKET = "demo-uploads-of-a-command"
MESSAGES = 12
EXAMPLES = CHECKOUT / "examples" / "splitting"
READY_SECONDS, END_SECONDS = 240, 240  # the emulator starts function instances meanwhile
# What a user runs: it knows the queue from the variable that the deployed consumer has, and nothing of the split, or of
# the stage's endpoint and keys.
COMMAND = (sys.executable, str(EXAMPLES / "consumer.py"), variable_of(QUEUE))


@dataclass(frozen=True, slots=True)
class Desk:
    """The deployed consumer, and a folder with the files of a user who shares its queue."""

    users: Users
    consumer: DeployedConsumer
    folder: WorkingFolder

    def send(self, author: str, *, count: int) -> set[str]:
        """Send messages and return their bodies; a standard queue may deliver one twice."""
        bodies = {f"by {author}, {secrets.token_hex(4)}" for _ in range(count)}
        for body in bodies:
            self.consumer.session.client("sqs").send_message(
                QueueUrl=self.consumer.queues[QUEUE],
                MessageBody=body,
                MessageAttributes={"author": {"DataType": "String", "StringValue": author}},
            )
        return bodies

    def upload(self, *authors: str) -> None:
        """Upload an object of each author, of which S3 notifies the queue."""
        for author in authors:
            self.consumer.session.client("s3").put_object(
                Bucket=BUCKET, Key=f"by {author}.txt", Body=b"", Metadata={"author": author}
            )

    def deployed(self) -> list[str]:
        return [one.body for one in self.consumer.received()]

    def splits(self) -> list[Any]:
        shown = self.folder.run("split", "status", "--target", self.consumer.target, "--json")
        return list(json.loads(shown)["splits"])

    def phases(self) -> list[str]:
        """Return the phase of each session."""
        shown = self.folder.run("split", "list", "--target", self.consumer.target, "--json")
        return [session["phase"] for session in json.loads(shown)]


def notify(consumer: DeployedConsumer) -> None:
    """Make S3 notify the consumer's queue of each object in the bucket."""
    sqs, s3 = consumer.session.client("sqs"), consumer.session.client("s3")
    url = consumer.queues[QUEUE]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    statement = {"Effect": "Allow", "Principal": {"Service": "s3.amazonaws.com"}, "Action": "sqs:SendMessage"}
    policy = {"Version": "2012-10-17", "Statement": [{**statement, "Resource": arn}]}
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
    s3.create_bucket(Bucket=BUCKET)
    s3.put_bucket_notification_configuration(
        Bucket=BUCKET,
        NotificationConfiguration={"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}]},
    )


def registry_of_s3_events(consumer: DeployedConsumer) -> Any:
    """Return the consumer's registry, in which its queue also holds S3 event notifications."""
    registry: Any = consumer.registry()
    registry["spec"]["queues"][QUEUE]["s3Event"] = True
    return registry


def plain(bodies: Sequence[str]) -> set[str]:
    """Return the bodies that are no events of S3."""
    return {one for one in bodies if one.startswith("by ")}


def uploaded(bodies: Sequence[str]) -> set[str]:
    """Return the keys in events of S3, as they are in the events: encoded."""
    events = [json.loads(one) for one in bodies if one.startswith("{")]
    return {record["s3"]["object"]["key"] for event in events for record in event.get("Records", [])}


@pytest.fixture
def desk(deployment: Deployment, stage_folder: StageFolder, tmp_path: Path) -> Desk:
    prefix = deployment.outputs["TemporaryQueuePrefix"]
    consumer = DeployedConsumer.deploy(deployment.session(), CONSUMER, [QUEUE], temporary_prefix=prefix)
    notify(consumer)
    filters = {"message_filter": {"author": "^ann$"}}, {"jq_filter": '.S3Metadata.author == "ann"'}
    entries = [{"queue_id": "*", "queue_type": "SQS", **one} for one in filters]
    (tmp_path / "mirrord.json").write_text(json.dumps({"feature": {"split_queues": entries}}))
    (tmp_path / "registry.yaml").write_text(json.dumps(registry_of_s3_events(consumer)))
    folder = WorkingFolder.at(tmp_path, stage_folder)
    folder.run("split", "registry", "apply", "--file", "registry.yaml")
    return Desk(Users(deployment, consumer.target), consumer, folder)


def test_a_command_gets_the_matching_messages_or_all_until_ctrl_c_and_the_consumer_the_others(
    desk: Desk, environment: dict[str, str], tmp_path: Path
):
    environment = {name: value for name, value in environment.items() if not name.startswith("AWS_")}
    before, own = desk.consumer.mappings(), ["split", "run", "--target", desk.consumer.target]
    command = ["--", *COMMAND]

    with terminal([*PROGRAM, *own, "--config", "mirrord.json", *command], tmp_path, environment) as shown:
        reads = wait_for(lambda: shown.after("reads "), "the command started", seconds=READY_SECONDS)
        by_ann, by_others = (desk.send(author, count=MESSAGES) for author in ("ann", "others"))
        subprocess.run([sys.executable, str(EXAMPLES / "send.py"), QUEUE], cwd=tmp_path, check=True)  # noqa: S603
        by_ann, by_others = by_ann | {"by ann"}, by_others | {"by bob"}
        desk.upload("ann", "others")
        wait_for(lambda: plain(shown.after("got ")) >= by_ann, "all messages of ann", seconds=READY_SECONDS)
        wait_for(lambda: plain(desk.deployed()) >= by_others, "all messages of others", seconds=READY_SECONDS)
        wait_for(lambda: uploaded(shown.after("got ")), "the upload of ann", seconds=READY_SECONDS)
        wait_for(lambda: uploaded(desk.deployed()), "the upload of others", seconds=READY_SECONDS)
        during = desk.phases()
        shown.type(CTRL_C)
        status = shown.process.wait(END_SECONDS)
        afterwards = desk.phases()
    # The split still drains, so that this session joins it when the first one is gone.
    with terminal([*PROGRAM, *own, "--exclusive", *command], tmp_path, environment) as exclusive:
        wait_for(lambda: exclusive.after("reads "), "the second command started", seconds=READY_SECONDS)
        with pytest.raises(AssertionError, match="is exclusive to session"):
            desk.folder.run("split", "start", "--target", desk.consumer.target, "--config", "mirrord.json")
        everything = desk.send("ann", count=MESSAGES) | desk.send("others", count=MESSAGES)
        wait_for(lambda: set(exclusive.after("got ")) >= everything, "all messages", seconds=READY_SECONDS)
        exclusive.type(CTRL_C)
        exclusive.process.wait(END_SECONDS)
    meanwhile = desk.deployed()
    desk.users.wait_until_over()
    assert desk.splits() == []
    again = desk.send("ann", count=1)
    wait_for(lambda: plain(desk.deployed()) >= again, "the consumer has all messages again", seconds=END_SECONDS)

    assert reads != [QUEUE]
    assert during == ["ready"]
    assert "ready" not in afterwards  # ended by the command, and not a minute later without its heartbeats
    assert status == INTERRUPTED
    assert plain(shown.after("got ")) == by_ann
    assert (uploaded(shown.after("got ")), uploaded(desk.deployed())) == ({"by+ann.txt"}, {"by+others.txt"})
    assert set(exclusive.after("got ")) == everything
    # Ctrl-C may come before the command deletes its last message, which is returned then.
    assert len(plain(desk.deployed()) & everything) <= 1
    assert plain(meanwhile) - everything == by_others
    assert plain(desk.deployed()) - everything == by_others | again
    assert desk.consumer.mappings() == before == {QUEUE: "Enabled"}
