"""The rules by which the writer posts log rows to a connection in Arvados' dialect: each once, if any filter passes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.live.arvados.filters import LogSubscription
from signalbox.live.arvados.id_sets import contains
from signalbox.live.arvados.row_state import POSTED_KEPT_FOR, with_deferred, with_posted
from signalbox.live.arvados.rows import LogRow, row_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.selection import is_logged
from signalbox.live.model.state import Session
from signalbox.live.outbox.decisions import MAXIMUM_WAIT, ItemAction, OutboxState, finish_backfill
from signalbox.live.outbox.items import ItemId
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.messages import SubscriptionId


@dataclass(frozen=True, slots=True)
class RowAudience:
    """What decides which rows a connection gets: its session, the rights of its user, and what was posted."""

    session: Session
    rights: Rights
    outbox: OutboxState

    @property
    def active(self) -> list[LogSubscription]:
        """Return the subscriptions whose answer was posted."""
        return [one for one in self.session.log_subscriptions if one.subscription in self.outbox.subscribed]

    @property
    def waiting(self) -> list[LogSubscription]:
        """Return the subscriptions that request past rows and have not got them."""
        done = self.outbox.subscribed - self.outbox.pending_backfills.keys()
        found = (one for one in self.session.log_subscriptions if one.subscription not in done)
        return [one for one in found if one.after is not None]

    def may_receive(self, event: LoggedEvent) -> bool:
        """Return whether the user may receive an event's topic, and the publisher included the session."""
        listener = self.session.listener
        return listener is not None and event.audience.admits(listener) and self.rights.may_receive(event.topic)

    def catch_up_start(self, *, progress: int) -> int:
        """Return the log id after which a catch-up reads rows; it has posted those up to the id `progress`."""
        past = max(progress, min((one.after or 0 for one in self.waiting), default=0))
        return min([past, *(first - 1 for first, _ in self.outbox.rows.deferred[:1])])

    def is_requested(self, row: LogRow, event: LoggedEvent) -> bool:
        """Return whether a catch-up includes a row: a waiting subscription requests it, or it was deferred."""
        rows = self.outbox.rows
        if contains(rows.posted, row.id) or not self.may_receive(event):
            return False
        is_past = any(row.id > (one.after or 0) and one.matches(row) for one in self.waiting)
        return is_past or (contains(rows.deferred, row.id) and passes(row, self.active))


def passes(row: LogRow, subscriptions: Iterable[LogSubscription]) -> bool:
    """Return whether a row passes the filters of any subscription."""
    return any(one.matches(row) for one in subscriptions)


def row_action(event: LoggedEvent, audience: RowAudience | None, *, waited: timedelta) -> ItemAction:
    """Return the action for a live event, which is posted once for all subscriptions, and never before a catch-up."""
    row = row_of(event)
    if row is None or audience is None or not audience.may_receive(event) or not passes(row, audience.active):
        return ItemAction.SKIP
    if contains(audience.outbox.rows.posted, row.id):
        return ItemAction.SKIP
    if audience.outbox.pending_backfills and is_logged(event):
        return ItemAction.DEFER
    return ItemAction.CLOSE if waited > MAXIMUM_WAIT else ItemAction.POST


def defer_row(outbox: OutboxState, row: LogRow) -> OutboxState:
    """Return the state after a live row was deferred to the pending catch-up."""
    return replace(outbox, rows=with_deferred(outbox.rows, row.id))


def row_posted(outbox: OutboxState, row: LogRow, session: Session, *, now: datetime) -> OutboxState:
    """Return the state after a row was posted.

    Its id is kept as long as a catch-up may include it: clients send their requests when they connect, one after the
    other.
    """
    is_kept = bool(outbox.pending_backfills) or now - session.opened_at < POSTED_KEPT_FOR
    return replace(outbox, rows=with_posted(outbox.rows, row.id, now=now, is_kept=is_kept))


def finish_catch_up(
    outbox: OutboxState, item_id: ItemId, subscription: SubscriptionId, *, now: datetime
) -> OutboxState:
    """Return the state after a subscription's past rows were posted completely."""
    done = finish_backfill(outbox, item_id, subscription, {}, now=now)
    return replace(done, rows=replace(done.rows, deferred=()), progress=None)
