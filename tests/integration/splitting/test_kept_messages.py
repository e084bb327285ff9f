"""A kept queue on the deployed stage: a session and a replay get its messages, and they are deleted on time."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from signalbox.aws.kept.settings import DynamoKeepSettings
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.clients.deployment import Deployment
from signalbox.flows.consumer import DeployedConsumer
from signalbox.kept.settings import KeepSetting
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import sqs_name
from signalbox.splitting.forwarding.deliveries import MARK
from tests.integration.live.page import WorkingFolder
from tests.integration.splitting.sessions import Users
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

QUEUE = QueueName("demo-memes-that-are-kept")
CONSUMER = "demo-consumer-of-a-kept-queue"
AGAIN = "q_kept-again"
HOUR = 3600
SECONDS = 240  # the emulator starts function instances meanwhile


def of(author: str) -> dict[str, object]:
    return {"message_filter": {"author": f"^{author}$"}}


def send(consumer: DeployedConsumer, author: str, bodies: Sequence[str]) -> None:
    for body in bodies:
        consumer.session.client("sqs").send_message(
            QueueUrl=consumer.queues[QUEUE],
            MessageBody=body,
            MessageAttributes={"author": {"DataType": "String", "StringValue": author}},
        )


def received(consumer: DeployedConsumer, url: str) -> list[Any]:
    found = consumer.session.client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageAttributeNames=["All"]
    )
    return list(found.get("Messages", []))


def kept_objects(deployment: Deployment) -> list[str]:
    bucket, prefix = deployment.outputs["HistoryBucket"], f"kept/{QUEUE}/"
    found = deployment.session().client("s3").list_object_versions(Bucket=bucket, Prefix=prefix)
    return [one["Key"] for one in [*found.get("Versions", []), *found.get("DeleteMarkers", [])]]


def test_a_later_session_gets_the_failing_messages_first_and_they_are_deleted_on_time(
    deployment: Deployment, stage_folder: StageFolder, tmp_path: Path
):
    prefix = deployment.outputs["TemporaryQueuePrefix"]
    consumer = DeployedConsumer.deploy(deployment.session(), CONSUMER, [QUEUE], temporary_prefix=prefix)
    users, folder = Users(deployment, consumer.target), WorkingFolder.at(tmp_path, stage_folder)
    users.apply(consumer.registry())
    shown = json.loads(folder.run("keep", "set", QUEUE, "--for", "2h", "--json"))
    assert (shown["kept_seconds"], shown["target"]) == (2 * HOUR, None)
    failing, others = {f"failing {number}" for number in range(5)}, {f"other {number}" for number in range(5)}

    with users.session("nobody", {QUEUE: of("nobody")}):
        send(consumer, "ann", sorted(failing))
        send(consumer, "bob", sorted(others))
        wait_for(lambda: {one.body for one in consumer.received()} >= failing | others, "the consumer", seconds=SECONDS)
    before = sorted(one.body for one in consumer.received())

    with users.session("ann", {QUEUE: of("ann")}, since_seconds=HOUR) as state:
        found: list[Any] = []
        wait_for(
            lambda: found.extend(received(consumer, state.queues[0].url)) or len(found) >= len(failing),
            "the failing messages",
            seconds=SECONDS,
        )
    assert {one["Body"] for one in found} == failing
    assert all(one["MessageAttributes"][MARK]["StringValue"].endswith(state.queues[0].temporary) for one in found)
    assert any("5 messages kept since" in note for note in state.notes)
    assert sorted(one.body for one in consumer.received()) == before

    folder.run("queue", "declare", AGAIN)
    record = json.loads(folder.run("replay", "--kept", QUEUE, "--into", AGAIN, "--id", "kept", "--yes", "--json"))
    assert (record["state"], record["sent"]) == ("done", len(failing | others))
    copies: list[Any] = []
    url = consumer.session.client("sqs").get_queue_url(
        QueueName=sqs_name(AGAIN, prefix=deployment.outputs["ExchangePrefix"])
    )["QueueUrl"]
    wait_for(
        lambda: copies.extend(received(consumer, url)) or len(copies) >= record["sent"], "the replay", seconds=SECONDS
    )
    assert sorted(one["Body"] for one in copies) == sorted(failing | others)
    assert {one["MessageAttributes"]["replay"]["StringValue"] for one in copies} == {"kept"}
    assert {one["MessageAttributes"]["author"]["StringValue"] for one in copies} == {"ann", "bob"}

    assert kept_objects(deployment)
    table = DynamoTable(deployment.session().client("dynamodb"), deployment.outputs["SplitTable"])
    settings = DynamoKeepSettings(table)
    settings.put(KeepSetting(QUEUE, timedelta(milliseconds=1), datetime.now(UTC)))  # all of it is over now
    control = {"FunctionName": deployment.outputs["ControlFunctionName"], "Payload": json.dumps({"task": "reconcile"})}
    done = json.loads(deployment.session().client("lambda").invoke(**control)["Payload"].read())
    assert done.get("complete") is True, done
    assert done["deleted"] > 0
    assert kept_objects(deployment) == []
    folder.run("keep", "remove", QUEUE, "--yes")
