"""The events of WAMP: live ones for each subscription, and those of a backfill before them."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import EventTexts
from signalbox.live.log.read_limits import ReadsBusy
from signalbox.live.outbox.backfill import BackfillEvent, BackfillReader
from signalbox.live.outbox.decisions import (
    WATERMARKS_KEPT_FOR,
    ItemAction,
    OutboxState,
    SequenceNumbers,
    continue_behind,
    defer,
    event_action,
    finish_backfill,
    mark_posted,
)
from signalbox.live.outbox.delivery import ConnectionDelivery
from signalbox.live.outbox.frames import Frame
from signalbox.live.outbox.items import BackfillRequest, SubscriptionEvent
from signalbox.live.outbox.ports import TopicLog
from signalbox.live.outbox.results import DeliveryOutcome
from signalbox.live.outbox.snapshots import ConnectionSnapshot
from signalbox.live.wamp.messages import EMPTY
from signalbox.live.wamp.patterns import TopicPattern

# Of a page, the part of a backfill that is read, serialized and then posted: fewer than 1,000 posts take the time of
# an invocation.
MAXIMUM_FRAMES, MAXIMUM_PAGE_BYTES = 1_000, 10_000_000


@dataclass(frozen=True, slots=True)
class WampDialect:
    """The `EventDialect` of WAMP, and its backfills."""

    log: TopicLog
    texts: EventTexts

    def action(self, candidate: SubscriptionEvent, snapshot: ConnectionSnapshot, *, waited: timedelta) -> ItemAction:
        """Return the action for an event, which is posted at least once if permitted, and never before the backfill."""
        return event_action(candidate, snapshot.outbox, session=snapshot.session, rights=snapshot.rights, waited=waited)

    def text(self, candidate: SubscriptionEvent, _snapshot: ConnectionSnapshot) -> str:
        """Return the EVENT for a subscription."""
        return self.texts.text(candidate.pattern, candidate.event)

    def deferred(self, candidate: SubscriptionEvent, outbox: OutboxState) -> OutboxState:
        """Return the state after an event was deferred to its subscription's backfill."""
        return defer(outbox, candidate)

    def posted(self, _frame: Frame, _snapshot: ConnectionSnapshot, *, now: datetime) -> None:
        """Return no state: posting an event writes nothing to the table."""

    def backfill(self, request: BackfillRequest, delivery: ConnectionDelivery) -> DeliveryOutcome:
        """Post the backfill of a subscription. Raises `PastTooLarge`."""
        try:
            return self._backfill(request, delivery)
        except ReadsBusy:
            return DeliveryOutcome.READS_BUSY

    def _backfill(self, request: BackfillRequest, delivery: ConnectionDelivery) -> DeliveryOutcome:
        subscription = request.subscription
        if request.item_id in delivery.outbox.done or subscription not in delivery.outbox.pending_backfills:
            return DeliveryOutcome.DONE
        page = self._page(request, delivery)
        for frame in page.frames:
            if not delivery.current().admits(SubscriptionEvent(request.pattern, frame.events[0])):
                continue  # the token of the session is over
            outcome = delivery.post_events(frame, self)
            if outcome is not DeliveryOutcome.DONE:
                return outcome
            for event in frame.events:
                candidate = SubscriptionEvent(request.pattern, event)
                delivery.advance(mark_posted(delivery.outbox, candidate, now=delivery.now()))
                delivery.count_past(event)
        if page.has_more:
            return DeliveryOutcome.OUT_OF_TIME
        if page.place is not None:
            state = continue_behind(delivery.outbox, request.item_id, subscription, place=page.place, old=page.old)
            delivery.advance(state)
            return DeliveryOutcome.OUT_OF_TIME
        delivery.advance(
            finish_backfill(delivery.outbox, request.item_id, subscription, page.settled, now=delivery.now())
        )
        return DeliveryOutcome.DONE

    def _page(self, request: BackfillRequest, delivery: ConnectionDelivery) -> "_Page":
        """Read a backfill, and return its first frames: no more is held while they are posted."""
        if not delivery.snapshot.is_complete:
            delivery.read()
        session, live = delivery.snapshot.session, delivery.snapshot.live
        listener = session.listener if session else None
        if session is None or session.realm is None or listener is None or live is None:
            return _Page()
        subscription = request.subscription
        deferred, marks = delivery.outbox.pending_backfills[subscription], delivery.outbox.watermarks.get(subscription)
        with self.log.request((session.realm, listener.authid)) as log:
            reader = BackfillReader(log, session.realm, live, delivery.now())
            item_id, after = delivery.outbox.retained_to or (None, None)
            backfill = reader.read(
                request,
                listener,
                deferred=deferred,
                posted=marks.numbers if marks else {},
                after=after if item_id == request.item_id else None,
            )
            # Read again after the logs: a user whose right was revoked must not receive events published since.
            delivery.read()
            since, size = min(request.at, delivery.now() - WATERMARKS_KEPT_FOR), 0
            old = {one.event.topic for one in backfill.events if one.event.logged_at < since}
            page = _Page(backfill.settled, place=backfill.place, old=old - deferred.keys())
            for frame in self._frames(request.pattern, backfill.events, page, delivery):
                if len(page.frames) == MAXIMUM_FRAMES or size > MAXIMUM_PAGE_BYTES:
                    page.has_more = True
                    break
                page.frames.append(frame)
                log.count_post(frame.size)
                size += frame.size
            return page

    def _frames(
        self, pattern: TopicPattern, events: Iterable[BackfillEvent], page: "_Page", delivery: ConnectionDelivery
    ) -> Iterator[Frame]:
        """Yield, while there is time, the frames with a backfill's events that were not posted and may be posted."""
        frame, newest = Frame(delivery.snapshot.separator), dict[RoutingKey, int]()
        for one in events:
            if delivery.is_late:
                page.has_more = True
                break
            if frame.is_full:
                yield frame
                frame = Frame(delivery.snapshot.separator)
            event, number = one.event, one.event.sequence or 0
            is_past = number <= newest.get(event.topic, -1)
            if is_past or not _is_in_backfill(SubscriptionEvent(pattern, event), delivery.current()):
                continue
            newest[event.topic] = number
            text = self.texts.text(pattern, event, is_retained=one.is_latest)
            event = replace(event, payload=EMPTY, headers={})
            if not frame.add(event, text):
                yield frame
                frame = Frame(delivery.snapshot.separator)
                frame.add(event, text)
        if frame.events:
            yield frame


@dataclass(slots=True)
class _Page:
    """Frames with the first events of a backfill that are still to be posted, without their payloads."""

    settled: SequenceNumbers = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    has_more: bool = False
    place: RoutingKey | None = None
    old: Collection[RoutingKey] = ()


def _is_in_backfill(candidate: SubscriptionEvent, snapshot: ConnectionSnapshot) -> bool:
    event = candidate.event
    watermarks = snapshot.outbox.watermarks.get(candidate.pattern.subscription_id)
    return (watermarks is None or not watermarks.includes(event)) and snapshot.admits(candidate)
