"""The past messages of an exchange, from the rows of their query."""

from datetime import UTC, datetime

from signalbox.history.what_if.past_messages import Amount, past_messages
from signalbox.history.what_if.window import PastWindow

WINDOW = PastWindow.before(datetime(2026, 11, 23, 12, 30, tzinfo=UTC), "1d")
NUMBERS = {"messages": "7", "bytes": "70", "pieces": "8", "largest": "20", "number": "3"}
NEW = {"new_messages": "1", "new_bytes": "10", "new_pieces": "2"}
TIMES = {"first_at": "2026-11-23 10:00:00.5", "last_at": "2026-11-23 12:00:00"}
ROW = {"bucket": None, "topic": None, "publisher": None, **NUMBERS, **NEW, **TIMES}


def test_the_sections_of_the_rows_are_the_parts_of_the_document():
    found = past_messages(
        [
            {**ROW, "section": "total"},
            {**ROW, "section": "bucket", "bucket": "2026-11-23 11"},
            {**ROW, "section": "topic", "topic": "a", "publisher": "ann"},
            {**ROW, "section": "topic", "topic": "b"},
            {**ROW, "section": "publisher", "publisher": "ann"},
            {**ROW, "section": "session", "publisher": "bob"},
            {**ROW, "section": "session"},
        ],
        WINDOW,
    )

    assert (found.total, found.new, found.joined) == (Amount(7, 70, 8), Amount(1, 10, 2), {"bob": 7})
    amount = {"messages": 7, "bytes": 70}
    assert found.document() == {
        "from": "2026-11-22T12:30:00+00:00",
        "to": "2026-11-23T12:30:00+00:00",
        **amount,
        "largest_bytes": 20,
        "first_at": "2026-11-23T10:00:00.500+00:00",
        "last_at": "2026-11-23T12:00:00.000+00:00",
        "new": {"messages": 1, "bytes": 10},
        "bucket": "hour",
        "buckets": [{"at": "2026-11-23T11:00:00+00:00", "messages": 7}],
        "topics": [{"topic": "a", "publisher": "ann", **amount}, {"topic": "b", **amount}],
        "topic_number": 3,
        "publishers": [{"publisher": "ann", **amount}],
        "publisher_number": 3,
    }


def test_without_rows_everything_is_zero():
    found = past_messages([], WINDOW).document()

    assert (found["messages"], found["first_at"], found["topics"], found["topic_number"]) == (0, None, [], 0)
