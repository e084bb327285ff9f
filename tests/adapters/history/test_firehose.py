"""The writer of history events to Firehose and the overflow queue."""

import json
import logging

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.history.firehose import DeliveryStream, FirehoseHistory, NoHistory, Overflow
from signalbox.rendezvous.reporting import events
from tests.fakes.backoff import AT_ONCE
from tests.fakes.rendezvous import START

EVENTS = [events.dead_letter(f"m{n}", at=START, reason="r") for n in range(3)]


class Stream:
    """A fake Firehose client that refuses chosen records a number of times, or fails."""

    def __init__(self, *, refuses: int = 0, fails: int = 0) -> None:
        self.taken: list[bytes] = []
        self.calls = 0
        self.refuses, self.fails = refuses, fails

    def put_record_batch(self, *, DeliveryStreamName: str, Records: list[dict]) -> dict:  # noqa: N803
        self.calls += 1
        if self.calls <= self.fails:
            raise ClientError({"Error": {"Code": "ServiceUnavailableException"}}, "PutRecordBatch")
        if self.calls <= self.refuses:
            self.taken += [r["Data"] for r in Records[1:]]
            refused = [{"ErrorCode": "ServiceUnavailableException"}] + [{"RecordId": "1"}] * (len(Records) - 1)
            return {"FailedPutCount": 1, "RequestResponses": refused}
        self.taken += [r["Data"] for r in Records]
        return {"FailedPutCount": 0, "RequestResponses": [{"RecordId": "1"}] * len(Records)}


def names(stream: Stream) -> list[str]:
    return sorted(json.loads(line)["message_id"] for line in b"".join(stream.taken).splitlines())


class Queue:
    """A fake SQS client that records sent messages, or fails."""

    def __init__(self, *, fails: bool = False) -> None:
        self.bodies: list[str] = []
        self.fails = fails

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803
        if self.fails:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "SendMessage")
        assert QueueUrl == "https://overflow"
        self.bodies.append(MessageBody)


def history(stream: Stream, queue: Queue | None = None) -> FirehoseHistory:
    kept = queue or Queue()
    return FirehoseHistory(DeliveryStream(stream, "history", AT_ONCE), Overflow(lambda: kept, "https://overflow"))


@pytest.mark.parametrize(
    ("stream", "calls"),
    [
        pytest.param(Stream(), 1, id="takes all"),
        pytest.param(Stream(refuses=1), 2, id="refuses one at first"),
        pytest.param(Stream(fails=2), 3, id="fails twice"),
    ],
)
def test_every_event_arrives_once(stream: Stream, calls: int) -> None:
    history(stream).write(EVENTS)

    assert names(stream) == ["m0", "m1", "m2"]
    assert stream.calls == calls
    assert all(line.endswith(b"\n") for line in stream.taken)


def test_events_that_firehose_refuses_go_to_the_overflow_queue() -> None:
    stream, queue = Stream(refuses=9), Queue()

    history(stream, queue).write(EVENTS)

    assert names(stream) == []
    assert queue.bodies == ["".join(event.to_json() + "\n" for event in EVENTS)]


def test_only_refused_records_are_retried() -> None:
    stream, queue = Stream(refuses=9), Queue()
    long = [events.dead_letter(f"m{n}", at=START, reason="r" * 60_000) for n in range(2)]

    history(stream, queue).write(long)

    assert set(names(stream)) == {"m1"}
    assert queue.bodies == [long[0].to_json() + "\n"]


def test_refused_events_share_messages_within_the_limit_of_sqs() -> None:
    long = [events.dead_letter(f"m{n}", at=START, reason="r" * 90_000) for n in range(12)]
    queue = Queue()

    history(Stream(fails=99), queue).write([*EVENTS, *long])

    assert [body.count("\n") for body in queue.bodies] == [14, 1]
    assert "".join(queue.bodies) == "".join(event.to_json() + "\n" for event in [*EVENTS, *long])


def test_a_long_line_spoils_no_call_of_others() -> None:
    """A message of the overflow queue of an earlier version may hold lines of any length."""

    class Limited(Stream):
        def put_record_batch(self, *, DeliveryStreamName: str, Records: list[dict]) -> dict:  # noqa: N803
            assert sum(len(record["Data"]) for record in Records) <= 4 * 2**20
            return super().put_record_batch(DeliveryStreamName=DeliveryStreamName, Records=Records)

    stream = Limited()
    lines = [f'"{number}{"x" * 900_000}"\n' for number in range(6)]

    assert DeliveryStream(stream, "history", AT_ONCE).put([*lines, '"short"\n']) == []

    assert len(stream.taken) == 7
    assert stream.calls == 2


def test_events_refused_by_firehose_and_sqs_are_logged_and_raise_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        history(Stream(refuses=9), Queue(fails=True)).write(EVENTS)

    assert "refused by Firehose and by the overflow queue" in caplog.text
    assert '"m0"' in caplog.text


def test_many_events_share_a_record_which_firehose_bills_in_steps_of_five_kilobytes() -> None:
    stream = Stream()

    history(stream).write([events.dead_letter(str(n), at=START, reason="r") for n in range(501)])

    assert stream.calls == 1
    assert len(stream.taken) == 2
    assert len(names(stream)) == 501


def test_a_call_stays_within_the_limits_of_put_record_batch() -> None:
    stream = Stream()

    history(stream).write([events.dead_letter(str(n), at=START, reason="r" * 90_000) for n in range(45)])

    assert stream.calls == 2
    assert len(stream.taken) == 45


def test_no_events_make_no_call() -> None:
    stream = Stream()

    history(stream).write([])

    assert stream.calls == 0


def test_a_stage_without_history_writes_no_event():
    assert NoHistory().write([]) is None  # type: ignore[func-returns-value]
