"""The function `split`, on AWS in this process."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from lambdas.shared.records import as_document
from lambdas.splitting import split, wiring
from lambdas.splitting.split import handler
from signalbox.aws.splitting.forwarders import LambdaForwarders
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.errors import EffectFailed, UnavailableError
from signalbox.kept.objects import read_batch
from signalbox.queues import QueueName
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import ForwardingState
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Phase, Split, SplitQueue, SplitSession, Stage
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import StoredSplit
from tests.adapters.shared.stubs import function
from tests.fakes.aws import REGION, aws, split_table, sqs  # noqa: F401 - fixtures
from tests.handlers.environment import (
    BUCKET,
    OVERFLOW,
    STREAM,
    Context,
    Queues,
    create_history_stream,
    new_instances,
    written_events,
)
from tests.handlers.recorded_events import ACCOUNT, Event, batch

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = Context(invoked_function_arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:split")
STANDARD, FIFO = QueueName("memes"), QueueName("orders.fifo")
RECEIVED_AT = "1795200000000"


def queue_entry(name: QueueName) -> SplitQueue:
    return SplitQueue(QueueId(name.partition(".")[0]), name, deployed_name(name), timedelta(seconds=30))


def deployed_name(name: QueueName) -> QueueName:
    return QueueName(f"mirrord-deployed-{name}")


def session(name: str, color: str, *, mode: str = "steal") -> SplitSession:
    entry = {"queue_type": "SQS", "queue_mode": mode, "message_filter": {"color": f"^{color}$"}}
    return SplitSession(
        session_id=SessionId(name),
        owner=f"{name}@laptop",
        config=json.dumps({"feature": {"split_queues": {"*": entry}}}),
        started_at=LONG_AGO,
        heartbeat_at=LONG_AGO,
        phase=Phase.READY,
        since=LONG_AGO,
        queues={original: QueueName(f"mirrord-{name}-{original}") for original in (STANDARD, FIFO)},
        stolen=frozenset({STANDARD, FIFO}) if mode == "steal" else frozenset(),
        effective_at=LONG_AGO,
    )


def record_of(body: str, *, color: str = "", queue: QueueName = STANDARD, group: str = "g") -> Event:
    """Return an SQS record as Lambda passes it."""
    ordered = {"MessageGroupId": group, "MessageDeduplicationId": f"d-{body}", "SequenceNumber": "1"}
    attribute = {"stringValue": color, "stringListValues": [], "binaryListValues": [], "dataType": "String"}
    return {
        "messageId": f"id-{body}",
        "receiptHandle": f"handle-{body}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": RECEIVED_AT,
            "SenderId": "AIDA",
            "ApproximateFirstReceiveTimestamp": RECEIVED_AT,
            **(ordered if queue.endswith(".fifo") else {}),
        },
        "messageAttributes": {"color": attribute} if color else {},
        "md5OfBody": "d41d8cd98f00b204e9800998ecf8427e",
        "md5OfMessageAttributes": None,
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        "awsRegion": REGION,
    }


@dataclass(kw_only=True)
class SplitStage(Queues):
    table: Any
    s3: Any

    def split(self, *sessions: SplitSession, s3_event: bool = False) -> StoredSplit:
        """Store a split with these sessions, and create its queues."""
        queues = (replace(queue_entry(STANDARD), s3_event=s3_event), queue_entry(FIFO))
        target = Target.parse("lambda/meme-app")
        found = Split(target, queues, sessions, Stage.SPLIT, LONG_AGO, timedelta(seconds=120), was_split=True)
        names = [queue.deployed for queue in queues]
        names += [name for one in sessions for name in one.queues.values()]
        for name in names:
            self.make(name)
        stored = DynamoSplits(self.table).create(found, documents=[])
        assert stored is not None
        return stored

    def ledger(self) -> list[dict[str, Any]]:
        return [item for item in self.table.scan()["Items"] if item["pk"].startswith("ledger#")]

    def history(self) -> list[dict[str, Any]]:
        return written_events(self.s3)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, sqs, split_table) -> Iterator[SplitStage]:  # noqa: F811 - fixtures
    found = SplitStage(sqs=sqs, table=split_table, s3=create_history_stream())
    settings = {
        "STAGE": "signalbox",
        "SPLIT_TABLE": "Splits",
        "HISTORY_STREAM": STREAM,
        "HISTORY_OVERFLOW_URL": OVERFLOW,
        "SPLIT_DEAD_LETTER_QUEUE_URL": found.make("dead-splits"),
        "SPLIT_TIMEOUT_SECONDS": "20",
        "SPLITTABLE_BUCKETS": "demo-*",
        "KEPT_BUCKET": BUCKET,
    }
    with new_instances(monkeypatch, settings, wiring, split):
        yield found


def failures(response: dict[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


def test_sessions_receive_their_claims_and_the_deployed_consumer_the_rest(stage):
    stage.split(session("ann", "red"), session("bob", "blue"))
    records = [record_of("1", color="red"), record_of("2", color="blue"), record_of("3", color="green"), record_of("4")]

    assert failures(handler(batch(*records), CONTEXT)) == []

    assert stage.bodies("mirrord-ann-memes") == ["1"]
    assert stage.bodies("mirrord-bob-memes") == ["2"]
    assert sorted(stage.bodies("mirrord-deployed-memes")) == ["3", "4"]


def test_a_call_whose_time_is_over_leaves_the_messages_of_a_group_that_it_has_not_begun(stage):
    stage.split(session("ann", "red"))
    late = SimpleNamespace(get_remaining_time_in_millis=lambda: -60_000)

    records = [record_of(number, color="red", queue=FIFO) for number in ("1", "2")]

    assert failures(handler(batch(*records), late)) == ["id-2"]
    assert failures(handler(batch(*records), CONTEXT)) == []


def test_s3_events_are_matched_by_the_metadata_of_their_objects(stage):
    entry = {"queue_type": "SQS", "jq_filter": '.S3Metadata.client == "secret"'}
    config = json.dumps({"feature": {"split_queues": {"*": entry}}})
    stage.split(replace(session("ann", ""), config=config), s3_event=True)
    stage.s3.create_bucket(Bucket="demo-uploads")
    stage.s3.put_object(Bucket="demo-uploads", Key="cat 1.jpg", Body=b"", Metadata={"client": "secret"})
    objects = [{"bucket": {"name": "demo-uploads"}, "object": {"key": key}} for key in ("cat+1.jpg", "gone")]
    mine, gone = (json.dumps({"Records": [{"s3": one}]}) for one in objects)

    assert failures(handler(batch(record_of(mine), record_of(gone)), CONTEXT)) == []

    assert stage.bodies("mirrord-ann-memes") == [mine]
    assert stage.bodies("mirrord-deployed-memes") == [gone]
    labels = [row["labels"].get("s3_metadata") for row in stage.history()]
    assert sorted(labels, key=str) == [None, "the S3 object does not exist"]


def test_attributes_of_every_type_arrive_unchanged(stage):
    stage.split()
    record = record_of("1")
    record["messageAttributes"] = {
        "text": {"stringValue": "t", "stringListValues": [], "binaryListValues": [], "dataType": "String"},
        "number": {"stringValue": "7.50", "stringListValues": [], "binaryListValues": [], "dataType": "Number.price"},
        "bytes": {
            "binaryValue": base64.b64encode(b"\x00\xff").decode(),
            "stringListValues": [],
            "binaryListValues": [],
            "dataType": "Binary",
        },
    }

    assert failures(handler(batch(record), CONTEXT)) == []

    (found,) = stage.messages("mirrord-deployed-memes")
    assert found["MessageAttributes"] == {
        "text": {"DataType": "String", "StringValue": "t"},
        "number": {"DataType": "Number.price", "StringValue": "7.50"},
        "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }


def test_messages_stay_in_flight_while_the_record_is_unreadable(stage):
    stored = stage.split()
    key = {"pk": f"split#{stored.split.target}", "sk": "split"}
    stage.table.update_item(
        Key=key,
        UpdateExpression="SET #record = :text",
        ExpressionAttributeNames={"#record": "record"},
        ExpressionAttributeValues={":text": '{"format": 99}'},
    )

    assert failures(handler(batch(record_of("1")), CONTEXT)) == ["id-1"]
    received_often = record_of("1")
    received_often["attributes"] |= {"ApproximateReceiveCount": "5"}
    with pytest.raises(UnavailableError, match="none of 1 messages was handled"):  # raises the alarm on errors
        handler(batch(received_often), CONTEXT)


def test_an_unreachable_table_fails_the_call_and_stops_the_forwarding(stage):
    """Each receive counts for the redrive policy of the queue's owner; `control` starts the forwarding again."""
    stage.make(STANDARD)
    context = Context(invoked_function_arn=function("split"))
    prefix = f"arn:aws:sqs:{REGION}:{ACCOUNT}:"
    forwarders = LambdaForwarders(boto3.client("lambda"), context.invoked_function_arn, prefix, "signalbox", 20)
    forwarders.start(STANDARD)
    stage.table.delete()

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        handler(batch(record_of("1")), context)

    assert forwarders.observe([STANDARD])[STANDARD].state is ForwardingState.OFF


def test_a_call_that_cannot_stop_the_forwarding_fails_for_its_own_reason(stage, monkeypatch):
    def refused(*_: object) -> None:
        raise EffectFailed("Lambda is away")

    monkeypatch.setattr(LambdaForwarders, "stop", refused)
    stage.table.delete()

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        handler(batch(record_of("1")), CONTEXT)


def test_a_closing_call_deletes_its_messages_and_leaves_the_ledger(stage):
    ending = replace(session("ann", "red"), phase=Phase.ENDING)
    stage.split(ending, session("bob", "blue"))
    url = stage.make(FIFO)
    stage.sqs.send_message(QueueUrl=url, MessageBody="1", MessageGroupId="g", MessageDeduplicationId="d-1")
    (received,) = stage.messages(FIFO)
    record = record_of("1", color="red", queue=FIFO) | {"receiptHandle": received["ReceiptHandle"]}

    assert failures(handler(batch(record), CONTEXT)) == []

    attributes = stage.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
    assert stage.bodies("mirrord-ann-orders.fifo") == ["1"]
    assert stage.ledger() == []


def test_a_record_becomes_the_message_that_receive_message_gives():
    record = record_of("1", color="red", queue=FIFO) | {"md5OfMessageAttributes": "abc"}

    assert as_document(record) == {
        "MessageId": "id-1",
        "ReceiptHandle": "handle-1",
        "MD5OfBody": "d41d8cd98f00b204e9800998ecf8427e",
        "Body": "1",
        "Attributes": record["attributes"],
        "MD5OfMessageAttributes": "abc",
        "MessageAttributes": {"color": {"DataType": "String", "StringValue": "red"}},
    }


def test_the_messages_of_a_kept_queue_are_in_the_bucket_and_only_their_ids_in_the_history(stage):
    stored = stage.split(session("ann", "red"))
    kept = replace(stored.split, queues=tuple(replace(one, is_kept=True) for one in stored.split.queues))
    assert DynamoSplits(stage.table).save(kept, replacing=stored)

    assert handler(batch(record_of("1", color="red"), record_of("2")), CONTEXT) == {"batchItemFailures": []}

    (key,) = kept_keys(stage)
    text = stage.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read().decode()
    assert [(one.message_id, one.body) for one in read_batch(text)] == [("id-1", "1"), ("id-2", "2")]
    found = [event for event in stage.history() if event.get("kind") == "kept"]
    assert [(event["message_id"], event["labels"]) for event in found] == [
        (name, {"target": "lambda/meme-app", "object": key}) for name in ("id-1", "id-2")
    ]


def test_messages_that_cannot_be_kept_stay_in_flight(stage, monkeypatch):
    stored = stage.split(session("ann", "red"))
    kept = replace(stored.split, queues=tuple(replace(one, is_kept=True) for one in stored.split.queues))
    assert DynamoSplits(stage.table).save(kept, replacing=stored)
    monkeypatch.setenv("KEPT_BUCKET", "missing")

    assert handler(batch(record_of("1", color="red")), CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "id-1"}]}

    assert stage.bodies(f"mirrord-ann-{STANDARD}") == []


def kept_keys(stage: SplitStage) -> list[str]:
    found = stage.s3.list_objects_v2(Bucket=BUCKET, Prefix="kept/")
    return [one["Key"] for one in found.get("Contents", [])]
