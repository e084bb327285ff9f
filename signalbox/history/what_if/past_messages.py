"""The past messages of an exchange whose topics match, as one query of the history counts them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.history.what_if.window import PastWindow, parse_bucket

Row = Mapping[str, str | None]

MAXIMUM_ROWS = 1_000  # of each section of a result: enough for every bucket, and for the topics that matter
PIECE_BYTES = 65_536  # SQS bills a request for each


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of messages, their bytes, and the pieces of 64 KiB that SQS bills for them."""

    messages: int = 0
    size_bytes: int = 0
    pieces: int = 0

    def document(self) -> dict[str, object]:
        """Return the amount as a JSON object."""
        return {"messages": self.messages, "bytes": self.size_bytes}


@dataclass(frozen=True, slots=True)
class TopicAmount:
    """The messages of a topic, or of one publisher on a topic; `name` is the topic, the publisher, or a user."""

    name: str
    amount: Amount
    publisher: str | None = None


@dataclass(frozen=True, slots=True)
class PastMessages:
    """The matched messages of a window.

    `new` excludes those that the queue of a binding got, or would get by its present bindings. `topics` and
    `publishers` are the largest, `topic_number` and `publisher_number` the numbers of all. `joined` has the users who
    joined the realm in the window, with the number of their sessions.
    """

    window: PastWindow
    total: Amount
    new: Amount
    largest_bytes: int
    first_at: datetime | None
    last_at: datetime | None
    buckets: Mapping[datetime, int]
    topics: Sequence[TopicAmount]
    topic_number: int
    publishers: Sequence[TopicAmount]
    publisher_number: int
    joined: Mapping[str, int]

    def document(self) -> dict[str, object]:
        """Return the messages as a JSON object."""
        return {
            "from": self.window.start.isoformat(timespec="seconds"),
            "to": self.window.end.isoformat(timespec="seconds"),
            **self.total.document(),
            "largest_bytes": self.largest_bytes,
            "first_at": self.first_at and self.first_at.isoformat(timespec="milliseconds"),
            "last_at": self.last_at and self.last_at.isoformat(timespec="milliseconds"),
            "new": self.new.document(),
            "bucket": self.window.bucket.word,
            "buckets": [
                {"at": begin.isoformat(), "messages": number} for begin, number in sorted(self.buckets.items())
            ],
            "topics": [_named(one, "topic") for one in self.topics],
            "topic_number": self.topic_number,
            "publishers": [_named(one, "publisher") for one in self.publishers],
            "publisher_number": self.publisher_number,
        }


def past_messages(rows: Iterable[Row], window: PastWindow) -> PastMessages:
    """Return the messages from the rows of the query of a window."""
    sections: dict[str, list[Row]] = {name: [] for name in ("total", "bucket", "topic", "publisher", "session")}
    for row in rows:
        sections[row["section"] or ""].append(row)
    # Without messages, some engines have no row of the total, and others one of zeros.
    total: Row = next(iter(sections["total"]), {})
    return PastMessages(
        window,
        _amount(total),
        _amount(total, "new_"),
        _number(total, "largest"),
        _moment(total, "first_at"),
        _moment(total, "last_at"),
        {parse_bucket(row["bucket"] or ""): _number(row, "messages") for row in sections["bucket"]},
        [*_amounts(sections["topic"], "topic")],
        _of_all(sections["topic"]),
        [*_amounts(sections["publisher"], "publisher")],
        _of_all(sections["publisher"]),
        {row["publisher"]: _number(row, "messages") for row in sections["session"] if row["publisher"]},
    )


def _amounts(rows: Iterable[Row], name: str) -> Iterator[TopicAmount]:
    for row in rows:
        yield TopicAmount(row[name] or "", _amount(row), row["publisher"] if name == "topic" else None)


def _amount(row: Row, prefix: str = "") -> Amount:
    return Amount(*(_number(row, f"{prefix}{name}") for name in ("messages", "bytes", "pieces")))


def _of_all(rows: Sequence[Row]) -> int:
    return _number(rows[0], "number") if rows else 0


def _number(row: Row, name: str) -> int:
    return int(row.get(name) or 0)


def _moment(row: Row, name: str) -> datetime | None:
    text = row.get(name)
    return parse_bucket(text) if text else None


def _named(one: TopicAmount, name: str) -> dict[str, object]:
    publisher = {} if one.publisher is None else {"publisher": one.publisher}
    return {name: one.name, **publisher, **one.amount.document()}
