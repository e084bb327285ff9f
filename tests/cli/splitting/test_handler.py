"""`signalbox split run --handler`: a real handler process, against a fake stage."""

import json
import threading
from pathlib import Path
from typing import Any

import boto3
import pytest

from signalbox.cli.splitting.handler.command import LocalFunction
from signalbox.cli.splitting.handler.options import HandlerOptions
from signalbox.clients.splitting.handler.template import InvalidTemplate
from signalbox.errors import RejectedError
from signalbox.splitting.control.protocol import SessionStatus
from tests.cli.shared.stage import printed, split
from tests.cli.splitting.handler_desk import TARGET, desk, desk_of  # noqa: F401 - a fixture
from tests.fakes.aws import aws  # noqa: F401 - a fixture
from tests.patience import wait_for
from tests.terminals import INTERRUPTED

FUNCTION = ("--target", "lambda/meme-app")


def deploy(**options: Any) -> str:
    """Create the function of the target; return its ARN."""
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = boto3.client("iam").create_role(RoleName="meme-app", AssumeRolePolicyDocument=policy)["Role"]["Arn"]
    made = boto3.client("lambda").create_function(
        FunctionName="meme-app",
        Runtime="python3.12",
        Role=role,
        Handler="app.handler",
        Code={"ZipFile": b"PK\x05\x06" + bytes(18)},
        **options,
    )
    return made["FunctionArn"]


def map_queue(**settings: Any) -> str:
    """Map the original queue to the function, as it is during a split: disabled."""
    sqs = boto3.client("sqs")
    url = sqs.create_queue(QueueName="memes")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    boto3.client("lambda").create_event_source_mapping(
        EventSourceArn=arn, FunctionName="meme-app", Enabled=False, **settings
    )
    return arn


def test_a_handler_gets_lambdas_event_of_the_original_queue_and_its_messages_are_deleted(desk):  # noqa: F811
    desk.write("def handler(event, context):\n    note(event=event)\n")
    attributes = {
        "tenant": {"DataType": "String", "StringValue": "ann"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\xff"},
    }
    desk.send("hello", MessageAttributes=attributes)

    result = desk.run(
        *TARGET, "--handler", "app.handler", until=lambda: printed("memes: 1 in") and desk.left() == (0, 0)
    )

    assert result.exit_code == INTERRUPTED
    (record,) = desk.seen()[0]["event"]["Records"]
    assert record["body"] == "hello"
    assert record["eventSourceARN"] == "arn:aws:sqs:us-east-1:123456789012:memes"
    assert record["messageAttributes"]["raw"] == {
        "binaryValue": "/w==",
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": "Binary",
    }
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert "memes: 1 in " in result.stderr
    assert desk.stage.commands[-1] == "stop"


def test_a_handler_sees_a_context_and_the_variables_of_lambda_and_of_its_session(desk):  # noqa: F811
    desk.write("""
def handler(event, context):
    remaining = context.get_remaining_time_in_millis()
    own = {name: getattr(context, name) for name in dir(context) if not name.startswith("_")}
    own = {name: value for name, value in own.items() if isinstance(value, (str, type(None)))}
    note(remaining=remaining, identity=context.identity.cognito_identity_id, environment=dict(os.environ), **own)
""")
    desk.send("hello")

    desk.run(*TARGET, "--handler", "app.handler", "--timeout-seconds", "60", until=desk.seen)

    (seen,) = desk.seen()
    assert 0 < seen["remaining"] <= 60_000
    assert seen["function_name"] == "worker"
    assert seen["function_version"] == "$LATEST"
    assert seen["memory_limit_in_mb"] == "128"
    assert seen["invoked_function_arn"] == "arn:aws:lambda:us-east-1:123456789012:function:worker"
    assert seen["log_group_name"] == "/aws/lambda/worker"
    assert "[$LATEST]" in seen["log_stream_name"]
    assert len(seen["aws_request_id"]) == 36
    assert seen["client_context"] is seen["identity"] is None
    environment = seen["environment"]
    assert environment["MEME_QUEUE"] == "mirrord-1"
    assert environment["AWS_LAMBDA_FUNCTION_NAME"] == "worker"
    assert environment["AWS_REGION"] == "us-east-1"
    assert "SIGNALBOX_HANDLER_REQUESTS" not in environment


def test_a_failed_handlers_messages_stay_in_flight_and_are_not_deleted(desk):  # noqa: F811
    desk.write("def handler(event, context):\n    note()\n    raise ValueError('no such meme')\n")
    desk.send("hello")

    result = desk.run(
        *TARGET, "--handler", "app.handler", "--json", until=lambda: printed("1 failed") and desk.left() == (0, 1)
    )

    assert "1 failed: ValueError: no such meme" in result.stderr
    document = json.loads(result.stdout.splitlines()[0])
    assert document["reason"] == "ValueError: no such meme"
    assert (document["messages"], document["deleted"], len(document["failed"])) == (1, [], 1)


def test_a_handler_is_killed_at_its_timeout_and_the_next_batch_gets_a_new_process(desk):  # noqa: F811
    desk.write("""
def handler(event, context):
    (record,) = event["Records"]
    note(body=record["body"], process=os.getpid())
    if record["body"] == "slow":
        while True:
            pass
""")
    desk.send("slow")

    def both() -> bool:
        seen = desk.seen()
        if len(seen) == 1 and printed("1 failed") and desk.left() == (0, 1):
            desk.send("quick")
        return len(seen) > 1

    options = ("--handler", "app.handler", "--timeout-seconds", "1", "--batch-size", "1")
    result = desk.run(*TARGET, *options, until=both)

    assert "Sandbox.Timedout: Task timed out after 1.00 seconds" in result.stderr
    processes = {one["body"]: one["process"] for one in desk.seen()}
    assert processes["slow"] != processes["quick"]


def test_a_debugger_stops_the_clock_of_the_timeout(desk):  # noqa: F811
    # As a debugger that another program attaches; test_handler_files.py has pdb at a terminal.
    desk.write("""
import sys, time
def handler(event, context):
    sys.settrace(None)
    time.sleep(1.2)
    note()
""")
    desk.send("hello")

    result = desk.run(
        *TARGET, "--handler", "app.handler", "--timeout-seconds", "1", until=lambda: desk.left() == (0, 0)
    )

    assert len(desk.seen()) == 1
    assert "a debugger is used: the time-out does not end this batch" in result.stderr


def test_changed_code_is_loaded_before_the_next_batch(desk):  # noqa: F811
    desk.write("def handler(event, context):\n    note(version=1)\n")
    desk.send("one")

    def changed() -> bool:
        if desk.seen() == [{"version": 1}] and desk.left() == (0, 0):
            desk.write("def handler(event, context):\n    note(version=2)  # changed\n")
            desk.send("two")
        return len(desk.seen()) == 2

    result = desk.run(*TARGET, "--handler", "app.handler", until=changed)

    assert desk.seen() == [{"version": 1}, {"version": 2}]
    assert "app.py changed: the handler is loaded again" in result.stderr


def test_no_message_is_received_while_the_handler_cannot_be_imported(desk):  # noqa: F811
    desk.write("raise RuntimeError('half written')\n")
    desk.send("hello")

    def mended() -> bool:
        if printed("cannot be imported") and "half" in (desk.folder / "app.py").read_text():
            assert desk.left() == (1, 0)
            desk.write("def handler(event, context):\n    note(count=event['Records'][0]['attributes'])\n")
        return bool(desk.seen())

    result = desk.run(*TARGET, "--handler", "app.handler", until=mended)

    assert "app.handler cannot be imported" in result.stderr
    assert "RuntimeError: half written" in result.stderr
    assert desk.seen()[0]["count"]["ApproximateReceiveCount"] == "1"


def test_messages_of_an_interrupted_batch_are_visible_at_once(desk):  # noqa: F811
    desk.write("import time\ndef handler(event, context):\n    note()\n    time.sleep(60)\n")
    desk.send("hello")

    result = desk.run(*TARGET, "--handler", "app.handler", "--no-timeout", until=desk.seen)

    assert result.exit_code == INTERRUPTED
    assert desk.left() == (1, 0)
    assert desk.stage.commands[-1] == "stop"


def test_a_session_that_the_stage_ends_ends_its_running_handler(desk):  # noqa: F811
    desk.write("import time\ndef handler(event, context):\n    note()\n    time.sleep(60)\n")
    desk.send("hello")
    options = HandlerOptions(handler="app.handler", code=desk.folder, no_timeout=True)
    state, ended = SessionStatus.parse(desk.stage.replies["start"]({})), threading.Event()
    threading.Thread(target=lambda: (wait_for(desk.seen, "the handler runs"), ended.set())).start()

    LocalFunction.of("ecs/demo/worker", options, boto3.Session(), {}).follow(state, until=ended)

    assert desk.left() == (1, 0)


def test_the_deployed_function_and_its_mapping_have_the_settings(desk):  # noqa: F811
    deploy(Timeout=42, MemorySize=512, Environment={"Variables": {"TABLE": "memes", "MEME_QUEUE": "mirrord-deployed"}})
    map_queue(BatchSize=2, FunctionResponseTypes=["ReportBatchItemFailures"])
    desk.write("""
def handler(event, context):
    note(count=len(event["Records"]), memory=context.memory_limit_in_mb,
         remaining=context.get_remaining_time_in_millis(), arn=context.invoked_function_arn,
         table=os.environ["TABLE"], queue=os.environ["MEME_QUEUE"])
    return {"batchItemFailures": [{"itemIdentifier": "of no message"}]}
""")
    desk.send("one", "two", "three")

    result = desk.run(*FUNCTION, "--handler", "app.handler", until=lambda: printed("memes: 1 in"))

    first, second = desk.seen()
    assert (first["count"], second["count"]) == (2, 1)
    assert (first["memory"], first["table"], first["queue"]) == ("512", "memes", "mirrord-1")
    assert 3_000 < first["remaining"] <= 42_000
    assert first["arn"] == "arn:aws:lambda:us-east-1:123456789012:function:meme-app"
    assert "memes: batches of 2 within 0 s, failures by message" in result.stderr
    assert "itemIdentifier 'of no message' is no message of the batch" in result.stderr


def test_a_workloads_handler_has_its_name_and_lambdas_defaults(desk):  # noqa: F811
    document = json.loads((desk.folder / "mirrord.json").read_text())
    (desk.folder / "mirrord.json").write_text(json.dumps({**document, "target": "deployment/meme-app/main"}))
    desk.write("def handler(event, context):\n    note(name=context.function_name)\n")
    desk.send("one")

    desk.run("--handler", "app.handler", until=desk.seen)

    assert desk.seen() == [{"name": "meme-app"}]


def test_messages_that_the_mappings_filters_reject_are_deleted_unseen(desk):  # noqa: F811
    deploy()
    pattern = json.dumps({"body": {"kind": ["meme"]}})
    map_queue(FilterCriteria={"Filters": [{"Pattern": pattern}]})
    desk.write("def handler(event, context):\n    note(bodies=[one['body'] for one in event['Records']])\n")
    wanted, other = json.dumps({"kind": "meme"}), json.dumps({"kind": "song"})
    desk.send(wanted, other)

    result = desk.run(*FUNCTION, "--handler", "app.handler", until=lambda: desk.seen() and desk.left() == (0, 0))

    assert [body for one in desk.seen() for body in one["bodies"]] == [wanted]
    assert "the mapping's filters reject 1, which are deleted as on AWS" in result.stderr


SAM = Path(__file__).with_name("sam_template.yaml").read_text()


def test_a_template_has_the_variables_and_the_mapping(desk):  # noqa: F811
    (desk.folder / "template.yaml").write_text(SAM)
    desk.write("def handler(event, context):\n    note(stage=os.environ['STAGE'], limit=os.environ['LIMIT'])\n")
    desk.send("one")

    result = desk.run(*TARGET, "--handler", "app.handler", "--template", "template.yaml", until=desk.seen)

    assert desk.seen()[0] == {"stage": "test", "limit": "5"}
    assert "references of the template that cannot be resolved here: TABLE" in result.stderr
    assert "memes: batches of 3 within 0 s, failures by message" in result.stderr
    assert "time-out 20 s" in result.stderr


POWERTOOLS = """
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import {names}, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

logger = Logger(service="memes")
processor = {processor}

def record_handler(record: SQSRecord) -> None:
    note(body=record.body, author=record.message_attributes["author"].string_value)
    if record.body.startswith("bad"):
        raise ValueError("no such meme")

@logger.inject_lambda_context
def handler(event, context):
    return process_partial_response(event=event, record_handler=record_handler, processor=processor, context=context)
"""
AUTHOR = {"author": {"DataType": "String", "StringValue": "ann"}}


def test_powertools_batch_processing_works_as_deployed(desk):  # noqa: F811
    processor = "BatchProcessor(event_type=EventType.SQS)"
    desk.write(POWERTOOLS.format(names="BatchProcessor, EventType", processor=processor))
    desk.send("good", "bad", "fine", MessageAttributes=AUTHOR)

    options = ("--handler", "app.handler", "--report-batch-item-failures")
    desk.run(*TARGET, *options, until=lambda: len(desk.seen()) == 3 and desk.left() == (0, 1))

    assert {one["author"] for one in desk.seen()} == {"ann"}


def test_powertools_stops_a_fifo_batch_at_the_first_failure(desk):  # noqa: F811
    desk = desk_of(desk.folder, desk.stage, "mirrord-1.fifo", FifoQueue="true", VisibilityTimeout="30")
    desk.write(POWERTOOLS.format(names="SqsFifoPartialProcessor", processor="SqsFifoPartialProcessor()"))
    for body in ("fine", "bad", "later"):
        desk.send(body, MessageGroupId="a", MessageDeduplicationId=body, MessageAttributes=AUTHOR)

    options = ("--handler", "app.handler", "--report-batch-item-failures")
    desk.run(*TARGET, *options, until=lambda: printed("2 failed") and sum(desk.left()) == 2)

    assert [one["body"] for one in desk.seen()] == ["fine", "bad"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ((), RejectedError, "give one of these: a command after --, --handler"),
        (("--handler", "app.handler", "--", "true"), RejectedError, "give one of these"),
        (("--handler", "app.handler", "--endpoint", "http://localhost:9000/"), RejectedError, "give one of these"),
        (("--batch-size", "2", "--", "true"), RejectedError, "--batch-size is for --handler and --endpoint only"),
        (("--endpoint", "http://localhost:9000/", "--python", "x"), RejectedError, "--python is for --handler only"),
        (("--handler", "other.handler"), RejectedError, "there is no module 'other'"),
        (("--handler", "handler"), RejectedError, "is not MODULE.FUNCTION"),
        (("--endpoint", "localhost:9000"), RejectedError, "is not a URL such as http://localhost:9000/2015-03-31"),
        (("--handler", "app.handler", "--resource", "Consumer"), RejectedError, "--resource needs --template"),
        (
            ("--handler", "app.handler", "--template", "template.yaml", "--resource", "Other"),
            InvalidTemplate,
            "the template has no function 'Other'; give --resource with one of: Consumer",
        ),
    ],
)
def test_wrong_options_are_refused_before_a_session_starts(desk, options, error, text):  # noqa: F811
    desk.write("def handler(event, context): ...\n")
    (desk.folder / "template.yaml").write_text(SAM)

    with pytest.raises(error, match=text):
        split("run", *TARGET, "--config", "mirrord.json", *options)
    assert desk.stage.asked == []


def test_an_interpreter_that_does_not_run_is_reported(desk):  # noqa: F811
    desk.write("def handler(event, context): ...\n")

    with pytest.raises(RejectedError, match="cannot run 'no-such-python'"):
        split("run", *TARGET, "--config", "mirrord.json", "--handler", "app.handler", "--python", "no-such-python")
    assert desk.stage.commands == ["start", "stop"]
