"""What the bridge needs: the cluster's table of logs, and the realm."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from signalbox.live.bridge.checkpoints import Checkpoint, Intent, StoredCheckpoint
from signalbox.live.bridge.publications import RowPublication
from signalbox.live.bridge.row_order import Writer
from signalbox.live.bridge.rows import DatabaseRow, IdRange


class LogTable(Protocol):
    """The table `logs`; each method reads with a snapshot of its own and raises `UnavailableError` without a server."""

    def newest_id(self) -> int:
        """Return the highest id that is visible, or 0."""

    def ids_after(self, position: int, *, limit: int) -> Sequence[int]:
        """Return the lowest ids behind a position, in ascending order."""

    def ids_within(self, ranges: Sequence[IdRange]) -> Sequence[int]:
        """Return the ids within ranges."""

    def rows(self, ids: Sequence[int]) -> Iterator[DatabaseRow]:
        """Yield the rows that still exist, in any order; each is read as it is taken."""

    def writers(self) -> Collection[Writer]:
        """Return the transactions that hold the lock of a writer of the table."""


class BridgeRealm(Protocol):
    """The realm; each method raises `UnavailableError` when AWS does not answer or its answer is unknown."""

    def checkpoint(self) -> StoredCheckpoint | None:
        """Return the latest checkpoint once everything that the realm accepted from the bridge is in its log."""

    def logged(self, window: Sequence[Intent], *, since: datetime) -> Collection[Intent]:
        """Return the publications of a window that are in the realm's log; the checkpoint is of `since`.

        Raises `RejectedError` when the log no longer contains all events since then.
        """

    def save(self, checkpoint: Checkpoint) -> None:
        """Publish a checkpoint."""

    def publish(self, publication: RowPublication) -> None:
        """Publish a part of a row. The realm accepts it once in five minutes."""
