"""The events of Arvados: log rows, each posted once if any filter of the connection passes it, and past rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.live.arvados.filters import LogSubscription
from signalbox.live.arvados.id_sets import contains
from signalbox.live.arvados.row_state import POSTED_KEPT_FOR, with_deferred, with_posted
from signalbox.live.arvados.rows import LogRow, row_message, row_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.read_limits import ReadsBusy
from signalbox.live.log.selection import is_logged
from signalbox.live.outbox.decisions import (
    MAXIMUM_WAIT,
    ItemAction,
    OutboxState,
    finish_backfill,
    progress_of,
    with_progress,
)
from signalbox.live.outbox.delivery import ConnectionDelivery
from signalbox.live.outbox.frames import Frame
from signalbox.live.outbox.items import CatchUpRequest, ItemId, SubscriptionEvent
from signalbox.live.outbox.ports import TopicLog
from signalbox.live.outbox.results import DeliveryOutcome
from signalbox.live.outbox.snapshots import ConnectionSnapshot


@dataclass(frozen=True, slots=True)
class RowAudience:
    """The values that decide which rows a connection gets: its session, the rights of its user, and the posted rows."""

    snapshot: ConnectionSnapshot

    @property
    def outbox(self) -> OutboxState:
        """Return the state of the outbox after the posts so far."""
        return self.snapshot.outbox

    @property
    def subscriptions(self) -> Sequence[LogSubscription]:
        """Return the subscriptions of the session."""
        return self.snapshot.session.log_subscriptions if self.snapshot.session else ()

    @property
    def active(self) -> list[LogSubscription]:
        """Return the subscriptions whose answer was posted."""
        return [one for one in self.subscriptions if one.subscription in self.outbox.subscribed]

    @property
    def waiting(self) -> list[LogSubscription]:
        """Return the subscriptions that request past rows and have not got them."""
        done = self.outbox.subscribed - self.outbox.pending_backfills.keys()
        found = (one for one in self.subscriptions if one.subscription not in done)
        return [one for one in found if one.after is not None]

    def may_receive(self, event: LoggedEvent) -> bool:
        """Return whether the user may receive an event's topic, and the publisher included the session."""
        listener = self.snapshot.session.listener if self.snapshot.session else None
        rights = self.snapshot.rights
        return listener is not None and event.audience.admits(listener) and rights.may_receive(event.topic)

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


@dataclass(frozen=True, slots=True)
class ArvadosDialect:
    """The `EventDialect` of Arvados' clients, and the rows that they request."""

    log: TopicLog

    def action(self, candidate: SubscriptionEvent, snapshot: ConnectionSnapshot, *, waited: timedelta) -> ItemAction:
        """Return the action for an event, which is posted once for all subscriptions, and never before a catch-up."""
        row, audience = row_of(candidate.event), RowAudience(snapshot)
        if row is None or not audience.may_receive(candidate.event) or not passes(row, audience.active):
            return ItemAction.SKIP
        if contains(snapshot.outbox.rows.posted, row.id):
            return ItemAction.SKIP
        if snapshot.outbox.pending_backfills and is_logged(candidate.event):
            return ItemAction.DEFER
        return ItemAction.CLOSE if waited > MAXIMUM_WAIT else ItemAction.POST

    def text(self, candidate: SubscriptionEvent, snapshot: ConnectionSnapshot) -> str:
        """Return the message with an event's row, which is alone in its frame and has the next number."""
        return "".join(_message(row, snapshot.outbox) for row in _rows([candidate.event]))

    def deferred(self, candidate: SubscriptionEvent, outbox: OutboxState) -> OutboxState:
        """Return the state after a live row was deferred to the pending catch-up."""
        for row in _rows([candidate.event]):
            outbox = replace(outbox, rows=with_deferred(outbox.rows, row.id))
        return outbox

    def posted(self, frame: Frame, snapshot: ConnectionSnapshot, *, now: datetime) -> OutboxState:
        """Return the state after a row was posted.

        Its id is kept as long as a catch-up may include it: clients send their requests when they connect, one after
        the other.
        """
        outbox, session = snapshot.outbox, snapshot.session
        is_kept = bool(outbox.pending_backfills or (session and now - session.opened_at < POSTED_KEPT_FOR))
        for row in _rows(frame.events):
            outbox = replace(outbox, rows=with_posted(outbox.rows, row.id, now=now, is_kept=is_kept))
        return outbox

    def catch_up(self, request: CatchUpRequest, delivery: ConnectionDelivery) -> DeliveryOutcome:
        """Post the past rows that subscriptions request."""
        try:
            return self._catch_up(request, delivery)
        except ReadsBusy:
            return DeliveryOutcome.READS_BUSY

    def _catch_up(self, request: CatchUpRequest, delivery: ConnectionDelivery) -> DeliveryOutcome:
        session, outbox = delivery.snapshot.session, delivery.outbox
        if request.item_id in outbox.done or request.subscription not in outbox.pending_backfills:
            return DeliveryOutcome.DONE
        if session is None or session.realm is None or session.listener is None:
            return DeliveryOutcome.DONE
        start = RowAudience(delivery.current()).catch_up_start(progress=progress_of(outbox, request.item_id))
        page: list[LoggedEvent] = []
        with self.log.request((session.realm, session.listener.authid)) as log:
            for event in log.rows_after(session.realm, start, now=delivery.now()):
                page.append(event)
                if log.is_large:
                    break
            has_more = log.is_large
        # Read again after the rows: a user whose right was revoked must not receive events published since.
        delivery.read()
        outcome = self._post_page(page, request.item_id, delivery)
        if outcome is DeliveryOutcome.DONE and has_more:
            outcome = self._paused(page, request.item_id, delivery)
        if outcome is not DeliveryOutcome.DONE:
            return outcome
        done = finish_backfill(delivery.outbox, request.item_id, request.subscription, {}, now=delivery.now())
        delivery.advance(replace(done, rows=replace(done.rows, deferred=()), progress=None))
        return DeliveryOutcome.DONE

    def _paused(self, events: Sequence[LoggedEvent], item_id: ItemId, delivery: ConnectionDelivery) -> DeliveryOutcome:
        """Continue a catch-up behind some events in the next call: its user owes what was read."""
        for row in _rows(events[-1:]):
            delivery.advance(with_progress(delivery.outbox, item_id, row.id))
        return DeliveryOutcome.OUT_OF_TIME

    def _post_page(
        self, events: Sequence[LoggedEvent], item_id: ItemId, delivery: ConnectionDelivery
    ) -> DeliveryOutcome:
        for event in events:
            row, snapshot = row_of(event), delivery.current()
            if row is None or not RowAudience(snapshot).is_requested(row, event):
                continue
            frame = Frame()
            frame.add(event, _message(row, snapshot.outbox))
            outcome = delivery.post_events(frame, self)
            if outcome is not DeliveryOutcome.DONE:
                delivery.advance(with_progress(delivery.outbox, item_id, row.id - 1))
                return outcome
            delivery.count_past(event)
        return DeliveryOutcome.DONE


def _rows(events: Iterable[LoggedEvent]) -> list[LogRow]:
    return [row for row in map(row_of, events) if row is not None]


def _message(row: LogRow, outbox: OutboxState) -> str:
    return row_message(row, outbox.rows.number + 1)
