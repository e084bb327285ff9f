"""What a subscriber keeps on disk: what it saw, and what failed. Instances may share it, and may be killed."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from signalbox.clients.sarracenia.subscriber import Failed, Received
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
PATIENCE_SECONDS = 30.0  # with other instances
# Another instance takes over what one that was killed had begun to try again.
CLAIM = timedelta(minutes=15)


class StateNotKept(UnavailableError):
    """Raised when the disk does not take what has to be kept."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A failed message that this instance tries again."""

    number: int
    failed: Failed


@dataclass(frozen=True, slots=True)
class State:
    """`Memory` and `Retries`, in one file."""

    connection: sqlite3.Connection

    def last_seen(self, key: str) -> datetime | None:
        """Return when a key was last seen, or None if never."""
        with self._transaction() as connection:
            row = connection.execute("SELECT at FROM seen WHERE key = ?", (key,)).fetchone()
        return None if row is None else _moment(row[0])

    def see(self, key: str, *, now: datetime) -> None:
        """Remember that a key is seen now."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (key, now.timestamp()))

    def forget(self, *, before: datetime) -> None:
        """Forget what was last seen before a moment."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM seen WHERE at < ?", (before.timestamp(),))

    def add(self, failed: Failed) -> None:
        """Store a failed message."""
        one = failed.received
        told = json.dumps([one.body, dict(one.headers), one.exchange, one.routing_key])
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO failed (received, attempts, due_at, reason) VALUES (?, ?, ?, ?)",
                (told, failed.attempts, failed.due_at.timestamp(), json.dumps(failed.reason)),
            )

    def claim(self, *, now: datetime) -> Claimed | None:
        """Return a failed message whose time has come, or None; meanwhile no other instance gets it."""
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT id, received, attempts, due_at, reason FROM failed WHERE due_at <= ? ORDER BY due_at LIMIT 1",
                (now.timestamp(),),
            ).fetchone()
            if row is None:
                return None
            connection.execute("UPDATE failed SET due_at = ? WHERE id = ?", ((now + CLAIM).timestamp(), row[0]))
        number, received, attempts, due_at, reason = row
        return Claimed(number, Failed(Received(*json.loads(received)), attempts, _moment(due_at), json.loads(reason)))

    def finish(self, claimed: Claimed) -> None:
        """Forget a failed message that was tried again; if it failed again, it is stored anew."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM failed WHERE id = ?", (claimed.number,))

    def next_due(self) -> datetime | None:
        """Return when the next failed message is tried again, or None if none waits."""
        with self._transaction() as connection:
            (due_at,) = connection.execute("SELECT min(due_at) FROM failed").fetchone()
        return None if due_at is None else _moment(due_at)

    def waiting(self) -> int:
        """Return how many failed messages wait for another try."""
        with self._transaction() as connection:
            (count,) = connection.execute("SELECT count(*) FROM failed").fetchone()
        return int(count)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _told():
            self.connection.execute("BEGIN IMMEDIATE")
            with self.connection:
                yield self.connection


@contextmanager
def opened(path: Path) -> Iterator[State]:
    """Give the state in a file, which is made if it is not there. Raises `StateNotKept`."""
    with _told():
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=PATIENCE_SECONDS, isolation_level=None)
    try:
        with _told():
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(TABLES)
        yield State(connection)
    finally:
        connection.close()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StateNotKept(f"cannot keep what was seen and what failed: {error}") from error


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
