"""A subscriber's SQLite file: recent announcements and failed messages, shared by its instances and crash-safe."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from signalbox.clients.sarracenia.subscriber import AnnouncedMessage, FailedMessage
from signalbox.errors import UnavailableError

TABLES = """
CREATE TABLE IF NOT EXISTS seen (key TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_at ON seen (at);
CREATE TABLE IF NOT EXISTS failed (
    id INTEGER PRIMARY KEY, received TEXT NOT NULL, attempts INTEGER NOT NULL,
    due_at REAL NOT NULL, reason TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS failed_due_at ON failed (due_at);
"""
LOCK_TIMEOUT_SECONDS = 30.0  # how long to wait for another instance's transaction
# After this time another instance takes over a retry of an instance that was killed.
CLAIM_DURATION = timedelta(minutes=15)


class StoreUnavailable(UnavailableError):
    """Raised when a subscriber's state cannot be read from or written to disk."""


@dataclass(frozen=True, slots=True)
class ClaimedMessage:
    """A failed message that this instance retries."""

    number: int
    failed: FailedMessage


@dataclass(frozen=True, slots=True)
class SubscriberStore:
    """The `DuplicateCache` and `RetryStore` of one SQLite file."""

    connection: sqlite3.Connection

    def last_seen(self, key: str) -> datetime | None:
        """Return the time at which a key was last recorded, or None."""
        with self._transaction() as connection:
            row = connection.execute("SELECT at FROM seen WHERE key = ?", (key,)).fetchone()
        return None if row is None else _moment(row[0])

    def record(self, key: str, *, now: datetime) -> None:
        """Record that a key was seen at `now`."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (key, now.timestamp()))

    def delete_keys(self, *, before: datetime) -> None:
        """Delete the keys last seen before a time."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM seen WHERE at < ?", (before.timestamp(),))

    def add(self, failed: FailedMessage) -> None:
        """Store a failed message."""
        one = failed.received
        received = json.dumps([one.body, dict(one.headers), one.exchange, one.routing_key])
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO failed (received, attempts, due_at, reason) VALUES (?, ?, ?, ?)",
                (received, failed.attempts, failed.due_at.timestamp(), json.dumps(failed.reason)),
            )

    def claim(self, *, now: datetime) -> ClaimedMessage | None:
        """Claim the failed message that is due first, or return None; other instances skip it for 15 minutes."""
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT id, received, attempts, due_at, reason FROM failed WHERE due_at <= ? ORDER BY due_at LIMIT 1",
                (now.timestamp(),),
            ).fetchone()
            if row is None:
                return None
            claimed_until = (now + CLAIM_DURATION).timestamp()
            connection.execute("UPDATE failed SET due_at = ? WHERE id = ?", (claimed_until, row[0]))
        number, document, attempts, due_at, reason = row
        received = AnnouncedMessage(*json.loads(document))
        return ClaimedMessage(number, FailedMessage(received, attempts, _moment(due_at), json.loads(reason)))

    def finish(self, claimed: ClaimedMessage) -> None:
        """Delete a claimed message after its retry; if it failed again, the retry stored it as a new one."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM failed WHERE id = ?", (claimed.number,))

    def next_due(self) -> datetime | None:
        """Return the time of the next retry, or None without failed messages."""
        with self._transaction() as connection:
            (due_at,) = connection.execute("SELECT min(due_at) FROM failed").fetchone()
        return None if due_at is None else _moment(due_at)

    def waiting(self) -> int:
        """Return the number of failed messages that wait for a retry."""
        with self._transaction() as connection:
            (count,) = connection.execute("SELECT count(*) FROM failed").fetchone()
        return int(count)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _store_errors():
            self.connection.execute("BEGIN IMMEDIATE")
            with self.connection:
                yield self.connection


@contextmanager
def open_store(path: Path) -> Iterator[SubscriberStore]:
    """Open the store in a file, which is created if it does not exist. Raises `StoreUnavailable`."""
    with _store_errors():
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None)
    try:
        with _store_errors():
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(TABLES)
        yield SubscriberStore(connection)
    finally:
        connection.close()


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailable(f"cannot store the subscription's state: {error}") from error


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
