"""The function `drain`: events in the overflow queue go to Firehose, or stay in the queue."""

import pytest

from lambdas.history import drain
from signalbox.errors import UnavailableError
from tests.fakes.aws import aws
from tests.handlers.environment import STREAM, clear_caches, create_history_stream, written_events

__all__ = ["aws"]

FIRST, SECOND, THIRD = (f'{{"event_id":"{name}"}}\n' for name in "abc")


@pytest.fixture
def s3(aws, monkeypatch):
    monkeypatch.setenv("HISTORY_STREAM", STREAM)
    clear_caches(drain)
    yield create_history_stream()
    clear_caches(drain)


def event(*bodies: str) -> dict:
    return {"Records": [{"messageId": f"m{number}", "body": body} for number, body in enumerate(bodies, 1)]}


def test_the_lines_of_all_messages_go_to_firehose(s3):
    assert drain.handler(event(FIRST + SECOND, THIRD), None) == {"batchItemFailures": []}

    assert sorted(row["event_id"] for row in written_events(s3)) == ["a", "b", "c"]


def test_a_message_of_which_a_line_is_refused_stays_in_the_queue(monkeypatch):
    class Stream:
        def put(self, lines):
            assert list(lines) == [FIRST, SECOND, THIRD]
            return [SECOND]

    clear_caches(drain)
    monkeypatch.setattr(drain.instance, "stream", Stream)

    assert drain.handler(event(FIRST + SECOND, THIRD), None) == {"batchItemFailures": [{"itemIdentifier": "m1"}]}


def test_an_outage_of_firehose_looks_like_one(monkeypatch):
    class Stream:
        def put(self, lines):
            return lines

    clear_caches(drain)
    monkeypatch.setattr(drain.instance, "stream", Stream)

    with pytest.raises(UnavailableError, match="accepted none of 2 messages"):
        drain.handler(event(FIRST, SECOND), None)
