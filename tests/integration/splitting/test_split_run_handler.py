"""`signalbox split run --handler` in a terminal: a handler gets a session's messages as the deployed function does."""

import io
import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.flows.consumer import FUNCTION_SECONDS, DeployedConsumer, variable_of
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import QueueName
from tests.integration.live.page import PROGRAM, WorkingFolder
from tests.integration.splitting.sessions import Users
from tests.patience import wait_for
from tests.terminals import CTRL_C, INTERRUPTED, terminal

pytestmark = [pytest.mark.emulator, pytest.mark.release]  # on moto in tests/cli/splitting/test_handler.py

QUEUE = QueueName("demo-memes-of-a-handler")
CONSUMER = "demo-consumer-and-a-handler"
READY_SECONDS, END_SECONDS = 240, 240  # the emulator starts function instances meanwhile
BATCH_SIZE = 2  # of the deployed mapping
# The deployed function records whole records, to be compared with those of the handler.
DEPLOYED = """
import json, os, time, boto3
def handler(event, context):
    table = boto3.resource("dynamodb").Table(os.environ["RECORD_TABLE"])
    for record in event["Records"]:
        item = {"pk": f"{time.time_ns()}#{record['messageId']}", "body": json.dumps(record), "queue": "any"}
        table.put_item(Item=item)
"""
HANDLER = """
import json, os
def handler(event, context):
    failed = []
    for record in event["Records"]:
        if record["body"] == "stop":
            breakpoint()
        first = record["attributes"]["ApproximateReceiveCount"] == "1"
        if record["body"] == "fails at first" and first:
            failed.append({"itemIdentifier": record["messageId"]})
            continue
        print("got", record["body"], flush=True)
        with open("records.jsonl", "a") as records:
            more = {"size": len(event["Records"]), "remaining": context.get_remaining_time_in_millis()}
            variables = {"table": os.environ["RECORD_TABLE"], "queue": os.environ["{variable}"]}
            records.write(json.dumps({"record": record, **more, **variables}) + "\\n")
    return {"batchItemFailures": failed}
"""
# What the emulator's own event lacks of Lambda's: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
ABSENT_IN_EMULATOR = {"md5OfMessageAttributes"}
EMPTY_LISTS = {"stringListValues": [], "binaryListValues": []}


@dataclass(frozen=True, slots=True)
class Desk:
    """The deployed function, and a folder with the handler of a user who shares its queue."""

    users: Users
    consumer: DeployedConsumer
    folder: WorkingFolder

    def send(self, author: str, *bodies: str) -> None:
        attributes = {
            "author": {"DataType": "String", "StringValue": author},
            "raw": {"DataType": "Binary", "BinaryValue": b"\xff\x00"},
        }
        for body in bodies:
            self.consumer.session.client("sqs").send_message(
                QueueUrl=self.consumer.queues[QUEUE], MessageBody=body, MessageAttributes=attributes
            )

    def deployed(self) -> list[dict[str, Any]]:
        return [json.loads(one.body) for one in self.consumer.received()]

    def handled(self) -> list[dict[str, Any]]:
        path = self.folder.folder / "records.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def bodies(self) -> set[str]:
        """Return the bodies that were handled; a standard queue may deliver a message twice."""
        return {one["record"]["body"] for one in self.handled()}

    def splits(self) -> list[Any]:
        shown = self.folder.run("split", "status", "--target", self.consumer.target, "--json")
        return list(json.loads(shown)["splits"])


@pytest.fixture
def desk(deployment: Deployment, stage_folder: StageFolder, tmp_path: Path) -> Desk:
    prefix = deployment.outputs["TemporaryQueuePrefix"]
    consumer = DeployedConsumer.deploy(deployment.session(), CONSUMER, [QUEUE], temporary_prefix=prefix)
    functions = deployment.session().client("lambda")
    functions.update_function_code(FunctionName=CONSUMER, ZipFile=_package(DEPLOYED))
    functions.get_waiter("function_updated_v2").wait(FunctionName=CONSUMER)
    (mapping,) = functions.list_event_source_mappings(FunctionName=CONSUMER)["EventSourceMappings"]
    functions.update_event_source_mapping(
        UUID=mapping["UUID"], BatchSize=BATCH_SIZE, FunctionResponseTypes=["ReportBatchItemFailures"]
    )
    wait_for(lambda: consumer.mappings() == {QUEUE: "Enabled"}, "the mapping is updated")
    entry = {"queue_type": "SQS", "message_filter": {"author": "^ann$"}}
    (tmp_path / "mirrord.json").write_text(json.dumps({"feature": {"split_queues": {"*": entry}}}))
    (tmp_path / "registry.yaml").write_text(json.dumps(consumer.registry()))
    (tmp_path / "app.py").write_text(HANDLER.replace("{variable}", variable_of(QUEUE)))
    folder = WorkingFolder.at(tmp_path, stage_folder)
    folder.run("split", "registry", "apply", "--file", "registry.yaml")
    return Desk(Users(deployment, consumer.target), consumer, folder)


def _package(code: str) -> bytes:
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("index.py", code)
    return package.getvalue()


def form(value: object) -> object:
    """Return the types and forms of a record's values, which differ for each message."""
    if isinstance(value, dict):
        return {key: form(one) for key, one in value.items()}
    if isinstance(value, list):
        return [form(one) for one in value]
    if isinstance(value, str) and re.fullmatch(r"\d+", value):
        return "number"
    if isinstance(value, str) and re.fullmatch(r"[0-9a-f-]{32,36}", value):
        return f"{len(value)} hexadecimal digits"
    return type(value).__name__


def test_a_handler_gets_the_deployed_functions_event_and_settings_until_ctrl_c(
    desk: Desk, environment: dict[str, str], tmp_path: Path
):
    before, own = desk.consumer.mappings(), ["split", "run", "--target", desk.consumer.target]
    command = [*PROGRAM, *own, "--config", "mirrord.json", "--handler", "app.handler"]

    with terminal(command, tmp_path, {**environment, "PYTHONPATH": str(Path.cwd()), "PAGER": "cat"}) as shown:
        wait_for(lambda: shown.after("· Ctrl-C ends it"), "the session is ready", seconds=READY_SECONDS)
        desk.send("ann", "one", "fails at first", "two")
        desk.send("others", "their own")
        wait_for(lambda: len(desk.bodies()) == 3, "all messages of ann", seconds=READY_SECONDS)
        wait_for(desk.deployed, "the message of others", seconds=READY_SECONDS)
        desk.send("ann", "stop")
        wait_for(lambda: b"(Pdb) " in shown.written, "the breakpoint", seconds=READY_SECONDS)
        shown.type(b"p 'at ' + record['body']\n")
        wait_for(lambda: b"'at stop'" in shown.written, "the debugger's answer")
        shown.type(b"c\n")
        wait_for(lambda: "stop" in desk.bodies(), "the message after the breakpoint", seconds=READY_SECONDS)
        # The handler prints before its batch is deleted; an interrupted batch is returned to the deployed consumer.
        wait_for(lambda: " ms, 0 failed" in shown.written.decode().rpartition("(Pdb) ")[2], "the report of the batch")
        shown.type(CTRL_C)
        status = shown.process.wait(END_SECONDS)
    desk.users.wait_until_over()
    assert desk.splits() == []
    text = shown.written.decode()

    assert status == INTERRUPTED
    assert desk.bodies() == {"fails at first", "one", "stop", "two"}
    assert max(one["size"] for one in desk.handled()) <= BATCH_SIZE
    first = next(one for one in desk.handled() if one["record"]["body"] == "one")
    assert first["table"] == CONSUMER  # a variable of the deployed function
    assert first["queue"] != QUEUE  # the session's
    assert 0 < first["remaining"] <= FUNCTION_SECONDS * 1000
    assert "batches of 2 within 0 s, failures by message" in text  # as the deployed mapping
    assert "a debugger is used: the time-out does not end this batch" in text
    assert desk.consumer.mappings() == before == {QUEUE: "Enabled"}
    theirs, *repeated = desk.deployed()
    assert {one["messageId"] for one in repeated} <= {theirs["messageId"]}  # a standard queue may deliver twice
    ours = first["record"]
    assert ours["messageAttributes"]["raw"] == {"binaryValue": "/wA=", "dataType": "Binary", **EMPTY_LISTS}
    assert ours["eventSourceARN"].endswith(f":{QUEUE}")
    assert set(ours) - set(theirs) == ABSENT_IN_EMULATOR
    theirs["messageAttributes"] = {name: {**one, **EMPTY_LISTS} for name, one in theirs["messageAttributes"].items()}
    assert {key: form(value) for key, value in ours.items() if key in theirs} == form(theirs)
