"""History on its way to Firehose."""

import json
import logging

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.firehose import FirehoseHistory
from signalbox.rendezvous import events
from tests.memory import START

EVENTS = [events.dead_letter(f"m{n}", at=START, reason="r") for n in range(3)]


class Stream:
    """A Firehose client that refuses chosen records a number of times, or fails as a whole."""

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
    return sorted(json.loads(line)["message_id"] for line in stream.taken)


@pytest.mark.parametrize(
    ("stream", "calls"),
    [
        pytest.param(Stream(), 1, id="takes all"),
        pytest.param(Stream(refuses=1), 2, id="refuses one at first"),
        pytest.param(Stream(fails=2), 3, id="fails twice"),
    ],
)
def test_every_event_arrives_once(stream: Stream, calls: int) -> None:
    FirehoseHistory(stream, "history").write(EVENTS)

    assert names(stream) == ["m0", "m1", "m2"]
    assert stream.calls == calls
    assert all(line.endswith(b"\n") for line in stream.taken)


def test_events_that_firehose_never_takes_are_logged_and_stop_nothing(caplog: pytest.LogCaptureFixture) -> None:
    stream = Stream(refuses=9)

    with caplog.at_level(logging.ERROR):
        FirehoseHistory(stream, "history").write(EVENTS)

    assert names(stream) == ["m1", "m2"]
    assert '"m0"' in caplog.text


def test_events_go_in_batches_of_five_hundred() -> None:
    stream = Stream()

    FirehoseHistory(stream, "history").write([events.dead_letter(str(n), at=START, reason="r") for n in range(501)])

    assert stream.calls == 2
    assert len(stream.taken) == 501


def test_nothing_to_write_is_no_call() -> None:
    stream = Stream()

    FirehoseHistory(stream, "history").write([])

    assert stream.calls == 0
