"""Golden files of the stored records and messages of history.

A golden file is changed by hand, on purpose, and together with a migration (see `files.py`).
"""

import json

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.aws.history.firehose import DeliveryStream, FirehoseHistory, Overflow
from signalbox.aws.history.replay_records import S3ReplayRecords
from signalbox.history.event import HistoryEvent
from signalbox.history.replay_state import ReplayClaim, ReplayProgress, ReplayState
from tests.golden.files import AT, Json, RecordingSqs, golden

BUCKET, PLACE = "trial-lake", "replays/"
ARGUMENTS = {"exchange": "xs_plain", "into": "q_plain", "from": "2026-02-01"}

PLAIN_EVENT = HistoryEvent("routed:m-1", AT, "exchange", "routed", "delivered")
FULL_EVENT = HistoryEvent(
    event_id="dead_letter:é",
    occurred_at=AT,
    capability="exchange",
    kind="dead_letter",
    outcome="dead",
    reason="too long",
    message_id="m-1",
    topic="a.b",
    sequence=3,
    source="xs_plain",
    destination="q_plain",
    size_bytes=512,
    latency_ms=0,
    attempt=2,
    labels={"publisher": "alice"},
)
PLANNED = ReplayProgress("r-1", ARGUMENTS, "snapshot-1", 10, 5120, AT)
UNDER_WAY = ReplayProgress(
    "r-2",
    ARGUMENTS,
    "snapshot-1",
    messages=10,
    size_bytes=5120,
    planned_at=AT,
    state=ReplayState.SENDING,
    position=5,
    sent=3,
    refused={"m-4": "too long"},
    refused_count=1,
    doubtful=("m-5",),
    claim=ReplayClaim(("m-6", "m-7"), AT),
    last=("m-2", "m-3"),
    kept=("m-1",),
)


class RecordingFirehose:
    """PutRecordBatch; `records` has the data that it accepted, none of them if it is busy."""

    def __init__(self, *, is_busy: bool = False) -> None:
        self.records: list[str] = []
        self.is_busy = is_busy

    def put_record_batch(self, **call: Json) -> Json:
        if self.is_busy:
            raise ClientError({"Error": {"Code": "ServiceUnavailableException"}}, "PutRecordBatch")
        self.records += [record["Data"].decode() for record in call["Records"]]
        return {"FailedPutCount": 0}


def written(*, is_busy: bool) -> Json:
    """Return the records and messages that Firehose and the overflow queue get for two events."""
    firehose, sqs = RecordingFirehose(is_busy=is_busy), RecordingSqs()
    stream, overflow = DeliveryStream(firehose, "trial-history"), Overflow(lambda: sqs, "overflow")
    FirehoseHistory(stream, overflow).write([PLAIN_EVENT, FULL_EVENT])
    return {"firehose": firehose.records, "overflow": sqs.sent}


@pytest.fixture
def s3(aws: None):
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    return client


def test_events_are_written_as_in_the_golden_file() -> None:
    found = {"accepted": written(is_busy=False), "refused": written(is_busy=True)}

    assert found == golden("history", "events")


def test_replay_records_are_written_as_in_the_golden_file(s3) -> None:
    records = S3ReplayRecords(s3, BUCKET, PLACE)
    for progress in (PLANNED, UNDER_WAY):
        records.save(progress)

    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket=BUCKET)["Contents"]]
    found = {key: json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()) for key in keys}
    assert found == golden("history", "replays")


def test_golden_replay_records_are_read(s3) -> None:
    for key, document in golden("history", "replays").items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(document).encode())

    records = S3ReplayRecords(s3, BUCKET, PLACE)
    assert [records.load("r-1"), records.load("r-2")] == [PLANNED, UNDER_WAY]


def test_a_golden_overflow_message_is_sent_to_firehose_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    from lambdas.history import drain  # noqa: PLC0415  # its wiring reads the environment
    from lambdas.shared import instance  # noqa: PLC0415

    firehose = RecordingFirehose()
    monkeypatch.setattr(instance, "stream", lambda: DeliveryStream(firehose, "trial-history"))
    found = golden("history", "events")

    drain.handler({"Records": [{"messageId": "m-1", "body": found["refused"]["overflow"][0]["MessageBody"]}]}, None)

    assert firehose.records == found["accepted"]["firehose"]
