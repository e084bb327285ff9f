"""The order of rows: ids of a sequence are not in commit order, so a gap may still be filled by a transaction.

PostgreSQL gives an id before the row's transaction commits. Inserting takes the lock `RowExclusiveLock` on the table
before the id, and keeps it until the row is visible (https://www.postgresql.org/docs/current/explicit-locking.html).
So the missing ids of one read belong to transactions that hold the lock after that read. Once these have ended, an id
that the next read does not show was rolled back. Unlike `pg_current_snapshot`, the locks do not make the bridge wait
for transactions that write to other tables.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.live.bridge.rows import IdRange

Writer = str  # the virtual id of a transaction
MAXIMUM_LATE_RANGES = 200


@dataclass(slots=True)
class _Watch:
    """Transactions that may still fill gaps; None until they are read."""

    writers: frozenset[Writer] | None = None
    is_over: bool = False

    def note_writers(self, writers: Collection[Writer]) -> None:
        self.writers = frozenset(writers) if self.writers is None else self.writers & frozenset(writers)
        self.is_over = not self.writers


@dataclass(slots=True)
class _Gaps:
    """The gaps below the id `limit`; `since` is when they were first seen."""

    limit: int
    since: datetime
    watch: _Watch = field(default_factory=_Watch)


@dataclass(slots=True)
class _Late:
    """Gaps that were passed over since their transactions took too long."""

    ranges: tuple[IdRange, ...]
    watch: _Watch = field(default_factory=_Watch)


class RowOrder:
    """Decides which of the visible rows are next.

    Every id up to `position` is published, rolled back or late. A gap delays the rows behind it for at most `patience`;
    then its ids are late: they are published when they become visible, behind rows with higher ids. Each call of
    `ready` follows a read of ids, and `note_writers` a read of the lock's holders after it.
    """

    def __init__(self, position: int, late: Sequence[IdRange] = (), *, patience: timedelta) -> None:
        self.position = position
        self.patience = patience
        self._gaps: _Gaps | None = None
        self._late = _known_late(late, position)
        self._settled = position

    @property
    def late(self) -> tuple[IdRange, ...]:
        """Return the ids that were passed over and may still become visible."""
        return tuple(one for entry in self._late for one in entry.ranges)

    @property
    def is_waiting(self) -> bool:
        """Return whether transactions delay rows or may add late ones."""
        return self._gaps is not None or bool(self._late)

    def ready(self, visible: Sequence[int], visible_late: Collection[int], now: datetime) -> list[int]:
        """Return the ids to publish next: late ones first, then those behind `position` in ascending order.

        `visible` are the ids of all rows behind `position`, as far as they were read, and `visible_late` those of
        `late` that have a row.
        """
        self._end_late(visible_late)
        self._end_gaps(visible, now)
        chosen = sorted(one for one in visible_late if one <= self.position)
        expected = self.position + 1
        for one in visible:
            if one > expected and one - 1 > self._settled:
                break
            chosen.append(one)
            expected = one + 1
        if visible and expected <= visible[-1] and self._gaps is None:
            self._gaps = _Gaps(visible[-1], now)
        return chosen

    def note_writers(self, writers: Collection[Writer]) -> None:
        """Record the transactions that hold the lock now."""
        for watch in [entry.watch for entry in self._late] + ([self._gaps.watch] if self._gaps else []):
            watch.note_writers(writers)

    def published(self, number: int) -> None:
        """Record that a row is published, or deleted."""
        self.position = max(self.position, number)
        for entry in self._late:
            entry.ranges = tuple(part for one in entry.ranges for part in one.without(number))
        self._late = [entry for entry in self._late if entry.ranges]

    def _end_late(self, visible: Collection[int]) -> None:
        for entry in self._late:
            if entry.watch.is_over:  # ids without a row were rolled back
                inside = (
                    one for one in sorted(visible) if any(part.first <= one <= part.last for part in entry.ranges)
                )
                entry.ranges = tuple(IdRange(one, one) for one in inside)
        self._late = [entry for entry in self._late if entry.ranges]

    def _end_gaps(self, visible: Sequence[int], now: datetime) -> None:
        gaps = self._gaps
        if gaps is None or not (gaps.watch.is_over or self._pass_over(gaps, visible, now)):
            return
        self._settled, self._gaps = max(self._settled, gaps.limit), None

    def _pass_over(self, gaps: _Gaps, visible: Sequence[int], now: datetime) -> bool:
        """Make gaps late that have lasted too long; return whether that is so."""
        # A read has a limit: ids behind its last one are not missing.
        gaps.limit = min(gaps.limit, visible[-1] if visible else self.position)
        ranges = _missing(max(self.position, self._settled), visible, gaps.limit)
        if now - gaps.since < self.patience or len(self.late) + len(ranges) > MAXIMUM_LATE_RANGES:
            return False
        self._late += [_Late(ranges, gaps.watch)] if ranges else []
        return True


def _known_late(ranges: Sequence[IdRange], position: int) -> list[_Late]:
    """Return the late ids of a checkpoint; those behind its position are seen as gaps again."""
    parts = [IdRange(one.first, min(one.last, position)) for one in ranges if one.first <= position]
    return [_Late(tuple(parts))] if parts else []


def _missing(start: int, visible: Sequence[int], limit: int) -> tuple[IdRange, ...]:
    """Return the ids after `start` and up to `limit` that are not visible."""
    known = [start, *(one for one in visible if start < one <= limit)]
    pairs = zip(known, [*known[1:], limit + 1], strict=True)
    return tuple(IdRange(before + 1, after - 1) for before, after in pairs if after - before > 1)
