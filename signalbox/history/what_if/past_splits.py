"""The past messages of split queues: how many came in, who got them, and by which filter."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.history.what_if.past_messages import Amount, Row
from signalbox.history.what_if.window import PastWindow, parse_bucket

MAXIMUM_SPLIT_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class SplitRow:
    """The messages of a queue in a bucket that had the same outcome by the same filter.

    `session` is None for the deployed consumer.
    """

    bucket: datetime
    queue: str
    target: str
    kind: str
    outcome: str
    session: str | None
    owner: str | None
    verdict: str | None
    amount: Amount
    largest_bytes: int

    @property
    def is_incoming(self) -> bool:
        """Return whether these are messages that came in; each is counted once, whatever was copied or returned."""
        return self.kind == "routed" and self.outcome != "copied"


@dataclass(frozen=True, slots=True)
class Share:
    """The messages that a session or the deployed consumer got, or left, and why."""

    session: str | None
    owner: str | None
    event: str
    verdict: str | None
    amount: Amount

    def document(self) -> dict[str, object]:
        """Return the share as a JSON object."""
        named = {"session": self.session, "owner": self.owner, "event": self.event, "why": self.verdict}
        return {**named, **self.amount.document()}


@dataclass(frozen=True, slots=True)
class PastSplits:
    """The rows of a window; `is_cut` says that there are more, with fewer messages each."""

    window: PastWindow
    rows: Sequence[SplitRow]
    is_cut: bool = False

    @property
    def queues(self) -> Sequence[str]:
        """Return the names of the queues with messages."""
        return sorted({row.queue for row in self.rows})

    @property
    def targets(self) -> Sequence[str]:
        """Return the deployed consumers with messages."""
        return sorted({row.target for row in self.rows})

    def of(self, *, queue: str | None, target: str | None) -> "PastSplits":
        """Return the rows of a queue, of a deployed consumer, or of both; None selects all."""
        rows = [row for row in self.rows if queue in (None, row.queue) and target in (None, row.target)]
        return PastSplits(self.window, rows, self.is_cut)

    @property
    def incoming(self) -> Amount:
        """Return the messages that came in: the most that any filter can match."""
        return _sum(row.amount for row in self.rows if row.is_incoming)

    @property
    def to_sessions(self) -> Amount:
        """Return the messages that came in and went to sessions instead of the deployed consumer."""
        return _sum(row.amount for row in self.rows if row.is_incoming and row.session is not None)

    @property
    def largest_bytes(self) -> int:
        """Return the size of the largest message that came in."""
        return max((row.largest_bytes for row in self.rows if row.is_incoming), default=0)

    @property
    def buckets(self) -> Mapping[datetime, int]:
        """Return the number of messages that came in, by bucket."""
        found: Counter[datetime] = Counter()
        for row in self.rows:
            if row.is_incoming:
                found[row.bucket] += row.amount.messages
        return found

    @property
    def shares(self) -> Sequence[Share]:
        """Return who got how many messages and why, the largest first."""
        found: dict[tuple[str | None, str | None, str, str | None], list[Amount]] = {}
        for row in self.rows:
            found.setdefault((row.session, row.owner, f"{row.kind}: {row.outcome}", row.verdict), []).append(row.amount)
        shares = [Share(*key, _sum(amounts)) for key, amounts in found.items()]
        return sorted(shares, key=lambda one: (-one.amount.messages, one.session or "", one.event, one.verdict or ""))

    def document(self) -> dict[str, object]:
        """Return the messages as a JSON object."""
        return {
            "from": self.window.start.isoformat(timespec="seconds"),
            "to": self.window.end.isoformat(timespec="seconds"),
            "queues": self.queues,
            "targets": self.targets,
            **self.incoming.document(),
            "largest_bytes": self.largest_bytes,
            "to_sessions": self.to_sessions.document(),
            "bucket": self.window.bucket.word,
            "buckets": [
                {"at": begin.isoformat(), "messages": number} for begin, number in sorted(self.buckets.items())
            ],
            "shares": [share.document() for share in self.shares],
            "is_cut": self.is_cut,
        }


def past_splits(rows: Iterable[Row], window: PastWindow) -> PastSplits:
    """Return the messages from the rows of the query of a window."""
    read = list(rows)
    number = int(read[0]["number"] or 0) if read else 0
    return PastSplits(window, list(map(_row, read)), is_cut=number > len(read))


def _row(row: Row) -> SplitRow:
    return SplitRow(
        parse_bucket(row["bucket"] or ""),
        row["source"] or "",
        row["target"] or "",
        row["kind"] or "",
        row["outcome"] or "",
        row["session"],
        row["owner"],
        row["verdict"],
        Amount(int(row["messages"] or 0), int(row["bytes"] or 0)),
        int(row["largest"] or 0),
    )


def _sum(amounts: Iterable[Amount]) -> Amount:
    messages = size_bytes = 0
    for one in amounts:
        messages += one.messages
        size_bytes += one.size_bytes
    return Amount(messages, size_bytes)
