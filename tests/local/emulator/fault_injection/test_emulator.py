"""The emulator with fault injection, as clients and functions see it: each rule acts, and a retry succeeds."""

import json
import time
from collections import Counter
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from websockets.sync.client import connect

from signalbox.clients.stage_session import LocalSession
from signalbox.local.emulator import lifecycle
from signalbox.local.emulator.lifecycle import Emulator
from signalbox.local.stage_folder import StageFolder
from tests.fault_injection.chance import Chance
from tests.fault_injection.connections import GONE_ODDS
from tests.fault_injection.failed_calls import FAULT_ODDS
from tests.fault_injection.late_metrics import SILENT_SECONDS
from tests.integration.rendezvous.peers import wait_for
from tests.local.emulator.fault_injection.conftest import SEED, Client
from tests.local.emulator.functions import ANYTHING, make_function, make_websocket

pytestmark = [pytest.mark.emulator, pytest.mark.release]

PATIENCE_SECONDS = 60.0
NOTHING = "def handler(event, context):\n    return {'statusCode': 200}\n"
SEND = (
    "import boto3, os\n"
    "sqs = boto3.client('sqs')\n"
    "def handler(event, context):\n"
    "    for record in event['Records']:\n"
    "        for url in os.environ['TARGETS'].split():\n"
    "            sqs.send_message(QueueUrl=url, MessageBody=record['body'])\n"
)
# Fails as long as the function's role may not call anything.
PROBE = "import boto3\nboto3.client('sqs').list_queues()\n"
KEY = {"AttributeName": "pk", "KeyType": "HASH"}


def code_of(call: Any, **parameters: Any) -> str:
    """Return the code of the error that a call gets, or an empty text."""
    try:
        call(**parameters)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def usable_queue(session: boto3.Session, name: str, **attributes: str) -> str:
    """Create a queue and wait until it can be used; return its URL."""
    sqs = session.client("sqs")
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    wait_for(lambda: not code_of(sqs.get_queue_url, QueueName=name), f"{name} is usable", seconds=PATIENCE_SECONDS)
    return str(url)


def arn_of(session: boto3.Session, url: str) -> str:
    found = session.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(found["Attributes"]["QueueArn"])


def map_to(session: boto3.Session, url: str, function: str) -> str:
    """Let a function read a queue; return the id of the mapping when it does."""
    functions = session.client("lambda")
    made = functions.create_event_source_mapping(EventSourceArn=arn_of(session, url), FunctionName=function)["UUID"]
    wait_for(
        lambda: functions.get_event_source_mapping(UUID=made)["State"] == "Enabled",
        "the mapping reads",
        seconds=PATIENCE_SECONDS,
    )
    return str(made)


def ready_function(session: boto3.Session, name: str, program: str, **environment: str) -> None:
    """Create a function and wait until its role may call SQS; its program ignores an event without records."""
    make_function(session, name, PROBE + program, **environment)

    def is_ready() -> bool:
        answer = session.client("lambda").invoke(FunctionName=name, Payload=json.dumps({"Records": [], "probe": True}))
        return "FunctionError" not in answer

    wait_for(is_ready, f"the role of {name} counts", seconds=PATIENCE_SECONDS)


def received(session: boto3.Session, url: str, *, until: int, attributes: bool = False) -> list[dict[str, Any]]:
    """Receive and delete messages until there are enough of different bodies and no more come."""
    sqs, found = session.client("sqs"), []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        page = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", [])
        for message in page:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        found += page
        if not page and len({message["Body"] for message in found}) >= until:
            return found
    raise AssertionError(f"{len(found)} messages after {PATIENCE_SECONDS} s")


def test_a_running_emulator_is_found_with_its_seed(faulty: Emulator, faulty_folder: StageFolder):
    found = lifecycle.running(faulty_folder)

    assert found == faulty
    assert found.faults == SEED


def test_the_seed_decides_which_calls_fail(once: Client):
    calls, chance = 400, Chance(SEED)
    expected = [number for number in range(calls) if chance.is_one_in(FAULT_ODDS, "failed calls", "ssm:GetParameters")]
    ssm = once("ssm")

    codes = [code_of(ssm.get_parameters, Names=["x"]) for _ in range(calls)]

    assert [number for number, code in enumerate(codes) if code] == expected != []
    assert set(codes) <= {"", "ThrottlingException", "InternalFailure"}


def test_an_sdk_with_its_usual_retries_sees_no_fault(session: boto3.Session):
    ssm = session.client("ssm")

    assert {code_of(ssm.get_parameters, Names=["x"]) for _ in range(200)} == {""}


def test_a_new_queue_cannot_be_mapped_or_take_dead_letters(session: boto3.Session):
    make_function(session, "reader", NOTHING)
    source = usable_queue(session, "with-dead-letters")
    sqs, prefix = session.client("sqs"), arn_of(session, source).rpartition(":")[0]
    sqs.create_queue(QueueName="just-made")
    redrive = json.dumps({"deadLetterTargetArn": f"{prefix}:just-made", "maxReceiveCount": 1})
    map_it = session.client("lambda").create_event_source_mapping

    codes = [
        code_of(sqs.set_queue_attributes, QueueUrl=source, Attributes={"RedrivePolicy": redrive}),
        code_of(map_it, EventSourceArn=f"{prefix}:just-made", FunctionName="reader"),
    ]

    assert codes == ["InvalidParameterValue", "InvalidParameterValueException"]


def test_a_new_queue_has_no_metrics(session: boto3.Session):
    usable_queue(session, "measured")
    metric = {
        "Namespace": "AWS/SQS",
        "MetricName": "ApproximateAgeOfOldestMessage",
        "Dimensions": [{"Name": "QueueName", "Value": "measured"}],
    }
    query = {"Id": "m0", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}
    began = time.time()

    def values() -> list[float]:
        times = {"StartTime": began - 600, "EndTime": time.time() + 60}
        found = session.client("cloudwatch").get_metric_data(MetricDataQueries=[query], **times)["MetricDataResults"]
        return [value for one in found for value in one["Values"]]

    assert values() == []
    wait_for(values, "metrics of the queue", seconds=PATIENCE_SECONDS)
    assert time.time() - began > SILENT_SECONDS - 10


def test_functions_get_messages_of_standard_queues_twice(session: boto3.Session):
    source, target = (
        usable_queue(session, "twice-in", VisibilityTimeout="3"),
        usable_queue(session, "twice-out.fifo", FifoQueue="true"),
    )
    program = SEND.replace(
        "MessageBody=record['body']",
        "MessageBody=record['body'], MessageGroupId='g', MessageDeduplicationId=record['receiptHandle']",
    )
    ready_function(session, "twice", program, TARGETS=target)
    map_to(session, source, "twice")
    sqs, messages = session.client("sqs"), 300
    for number in range(messages):
        sqs.send_message(QueueUrl=source, MessageBody=str(number))

    bodies = Counter(message["Body"] for message in received(session, target, until=messages))

    assert len(bodies) == messages < bodies.total()


def test_a_mapping_takes_its_time_and_refuses_other_changes(session: boto3.Session, once: Client):
    url = usable_queue(session, "mapped")
    make_function(session, "mapped", NOTHING)
    functions = session.client("lambda")

    def state() -> str:
        return str(functions.get_event_source_mapping(UUID=mapping)["State"])

    def wait(expected: str) -> None:
        wait_for(lambda: state() == expected, expected, seconds=PATIENCE_SECONDS)

    made = functions.create_event_source_mapping(EventSourceArn=arn_of(session, url), FunctionName="mapped")
    mapping = made["UUID"]
    assert made["State"] == state() == "Creating"
    assert code_of(functions.delete_event_source_mapping, UUID=mapping) == "ResourceInUseException"
    wait("Enabled")
    assert functions.update_event_source_mapping(UUID=mapping, Enabled=False)["State"] == state() == "Disabling"
    assert code_of(functions.update_event_source_mapping, UUID=mapping, Enabled=True) == "ResourceInUseException"
    wait("Disabled")
    assert functions.delete_event_source_mapping(UUID=mapping)["State"] == state() == "Deleting"
    wait_for(
        lambda: code_of(functions.get_event_source_mapping, UUID=mapping) == "ResourceNotFoundException",
        "the mapping is gone",
        seconds=PATIENCE_SECONDS,
    )


def test_changes_of_iam_count_later(session: boto3.Session, faulty: Emulator):
    iam = session.client("iam")
    iam.create_user(UserName="newcomer")
    key = iam.create_access_key(UserName="newcomer")["AccessKey"]
    iam.put_user_policy(UserName="newcomer", PolicyName="anything", PolicyDocument=json.dumps(ANYTHING))
    user = LocalSession(
        faulty.endpoint_url,
        region="us-east-1",
        access_key_id=key["AccessKeyId"],
        secret_access_key=key["SecretAccessKey"],
    ).client("sqs")

    assert code_of(user.list_queues) == "InvalidClientTokenId"
    wait_for(lambda: not code_of(user.list_queues), "the key and its rights count", seconds=PATIENCE_SECONDS)
    iam.delete_user_policy(UserName="newcomer", PolicyName="anything")
    assert code_of(user.list_queues) == ""
    wait_for(lambda: code_of(user.list_queues) == "AccessDenied", "the rights are gone", seconds=PATIENCE_SECONDS)


def test_a_connection_ends_between_two_posts(session: boto3.Session, faulty: Emulator):
    """As API Gateway ends connections: the post gets 410, and the client sees a close frame."""
    url = _make_websocket(session, "ending")
    posts = session.client("apigatewaymanagementapi", endpoint_url=url)

    with connect(url.replace("http:", "ws:")) as socket:
        connection = _connection(session)
        codes = (code_of(posts.post_to_connection, ConnectionId=connection, Data=b"x") for _ in range(10 * GONE_ODDS))
        assert next(filter(None, codes)) == "GoneException"
        assert code_of(posts.post_to_connection, ConnectionId=connection, Data=b"x") == "GoneException"
        assert all(socket)  # ends without an error when the connection is closed as announced


def _connection(session: boto3.Session) -> str:
    """Return the id that the function at `$connect` received."""
    sqs = session.client("sqs")
    url = sqs.get_queue_url(QueueName="ending-connections")["QueueUrl"]
    return str(received(session, url, until=1)[0]["Body"])


def _make_websocket(session: boto3.Session, name: str) -> str:
    """Create a WebSocket API whose function at `$connect` sends the connection's id to a queue; return its URL."""
    queue = usable_queue(session, f"{name}-connections")
    program = (
        "import boto3, os\n"
        "def handler(event, context):\n"
        "    if 'probe' in event:\n"
        "        return\n"
        "    connection = event['requestContext']['connectionId']\n"
        "    boto3.client('sqs').send_message(QueueUrl=os.environ['TARGETS'], MessageBody=connection)\n"
        "    return {'statusCode': 200}\n"
    )
    ready_function(session, name, program, TARGETS=queue)
    function = session.client("lambda").get_function(FunctionName=name)["Configuration"]["FunctionArn"]
    return make_websocket(session, name, function)
