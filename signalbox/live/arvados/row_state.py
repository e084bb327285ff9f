"""The state of the log rows that were posted to a connection, as far as later rows depend on it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.live.arvados.id_sets import IdRanges, with_id

# A row that a catch-up has posted is in the outbox within seconds, and clients send all requests when they connect.
POSTED_KEPT_FOR = timedelta(minutes=5)
# A range is about 20 bytes in the record of the outbox. Above that, a row may be posted for two requests.
MAXIMUM_RANGES = 5_000


@dataclass(frozen=True, slots=True)
class RowState:
    """The rows of a connection.

    - `number`: the number of the last message.
    - `posted`: the ids that were posted, the last of them at `posted_at`, which are not posted again.
    - `deferred`: the ids of live rows that the next catch-up includes.
    """

    number: int = 0
    posted: IdRanges = ()
    posted_at: datetime | None = None
    deferred: IdRanges = ()


NO_ROWS = RowState()


def with_posted(rows: RowState, number: int, *, now: datetime, is_kept: bool) -> RowState:
    """Return the state after a row was posted; with `is_kept` its id is not posted again."""
    counted = replace(rows, number=rows.number + 1)
    if not is_kept:
        return counted
    return replace(counted, posted=with_id(rows.posted, number)[-MAXIMUM_RANGES:], posted_at=now)


def with_deferred(rows: RowState, number: int) -> RowState:
    """Return the state after a live row was deferred to the next catch-up."""
    return replace(rows, deferred=with_id(rows.deferred, number))


def pruned(rows: RowState, *, now: datetime) -> RowState:
    """Return the state to save, without ids that are not needed any more."""
    is_old = rows.posted_at is not None and now - rows.posted_at > POSTED_KEPT_FOR
    return replace(rows, posted=(), posted_at=None) if is_old else rows
