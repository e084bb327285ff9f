"""A cluster's table of logs with transactions, and a realm, in memory."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from signalbox.live.bridge.checkpoints import Checkpoint, Intent, StoredCheckpoint
from signalbox.live.bridge.publications import RowPublication
from signalbox.live.bridge.rows import DatabaseRow, IdRange

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
COLLECTION = "zzzzz-4zz18-000000000000000"
STATE = f"record.collection.-.{COLLECTION}"
EVENT, CACHE = f"{STATE}.update", f"cache.collection.{COLLECTION}"


def intents(*numbers: int) -> tuple[Intent, ...]:
    """Return all publications of rows."""
    return tuple(Intent(number, topic) for number in numbers for topic in (EVENT, STATE, CACHE))


@dataclass(slots=True)
class FakeCluster:
    """The table `logs`: ids are given when a transaction inserts, and rows are visible when it commits.

    `before_read` is called before each read: another process's transactions go on between any two of them.
    """

    rows_by_id: dict[int, DatabaseRow] = field(default_factory=dict)
    open: dict[str, list[int]] = field(default_factory=dict)
    last_id: int = 0
    before_read: Callable[[], None] = lambda: None

    def insert(self, writer: str) -> int:
        """Insert a row in a transaction, which begins if it is not open."""
        self.last_id += 1
        self.open.setdefault(writer, []).append(self.last_id)
        return self.last_id

    def commit(self, writer: str) -> None:
        """Commit a transaction."""
        for number in self.open.pop(writer, []):
            self.rows_by_id[number] = DatabaseRow(number, object_uuid=COLLECTION, event_type="update")

    def roll_back(self, writer: str) -> None:
        """Roll a transaction back; its ids are lost."""
        self.open.pop(writer, None)

    def newest_id(self) -> int:
        self.before_read()
        return max(self.rows_by_id, default=0)

    def ids_after(self, position: int, *, limit: int) -> Sequence[int]:
        self.before_read()
        return sorted(one for one in self.rows_by_id if one > position)[:limit]

    def ids_within(self, ranges: Sequence[IdRange]) -> Sequence[int]:
        self.before_read()
        return [one for one in self.rows_by_id if any(one in part for part in ranges)]

    def rows(self, ids: Sequence[int]) -> Iterator[DatabaseRow]:
        self.before_read()
        return iter([self.rows_by_id[one] for one in ids if one in self.rows_by_id])

    def writers(self) -> Collection[str]:
        self.before_read()
        return set(self.open)


class Killed(BaseException):
    """Raised instead of going on: the process is killed."""


@dataclass(slots=True)
class FakeRealm:
    """A realm that accepts everything at once, and nothing twice by itself: it does not know de-duplication ids.

    `before_call` and `after_call` run before and after a message is accepted, and may raise.
    """

    accepted: list[Intent] = field(default_factory=list)
    stored: StoredCheckpoint | None = None
    saved: int = 0
    before_call: Callable[[], None] = lambda: None
    after_call: Callable[[], None] = lambda: None

    @property
    def published(self) -> list[int]:
        """Return the ids of the rows whose events were accepted, in that order."""
        return [one.id for one in self.accepted if one.topic.endswith(".update")]

    def checkpoint(self) -> StoredCheckpoint | None:
        self.before_call()
        return self.stored

    def logged(self, window: Sequence[Intent], *, since: datetime) -> Collection[Intent]:
        self.before_call()
        assert self.stored is not None
        assert since == self.stored.at
        return {*window} & {*self.accepted}

    def save(self, checkpoint: Checkpoint) -> None:
        self.before_call()
        self.stored = StoredCheckpoint(Checkpoint.parse(checkpoint.document()), NOON)
        self.saved += 1
        self.after_call()

    def publish(self, publication: RowPublication) -> None:
        self.before_call()
        self.accepted.append(Intent(publication.id, publication.topic))
        self.after_call()


def counted_calls(at: Mapping[int, type[BaseException]]) -> Callable[[], None]:
    """Return a function that raises an exception at some of its calls, which are counted from 0."""
    calls: Iterator[int] = iter(range(1_000_000))

    def call() -> None:
        error = at.get(next(calls))
        if error is not None:
            raise error

    return call
