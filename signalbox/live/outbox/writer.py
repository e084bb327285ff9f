"""The only writer to connections: posts the items of an outbox in their order, if they are permitted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import EventTexts
from signalbox.live.log.read_limits import MAXIMUM_OF_REQUEST, QUERY, PastTooLarge
from signalbox.live.model.state import ConnectionId, Dialect, PastRefused
from signalbox.live.outbox.arvados_dialect import ArvadosDialect
from signalbox.live.outbox.decisions import (
    MAXIMUM_WAIT,
    ItemAction,
    begin_reply,
    finish_reply,
    progress_of,
    reply_action,
    with_done,
    with_progress,
    without_watermarks,
)
from signalbox.live.outbox.delivery import ConnectionDelivery, EventDialect
from signalbox.live.outbox.frames import Frame
from signalbox.live.outbox.items import (
    BackfillRequest,
    CatchUpRequest,
    EventBatch,
    OutboxItem,
    Reply,
    SubscriptionEvent,
)
from signalbox.live.outbox.ports import Connections, PostResult, TopicLog
from signalbox.live.outbox.results import BatchResult, DeliveryOutcome
from signalbox.live.outbox.snapshots import ConnectionSnapshot, ConnectionSnapshots, request_of
from signalbox.live.outbox.wamp_dialect import WampDialect
from signalbox.live.wamp import uris
from signalbox.live.wamp.codec import serialize
from signalbox.live.wamp.messages import Goodbye
from signalbox.messages import MessageId

# The most that a subscription waits for reads, longer than most outages last; rows are kept for twice as long.
LONGEST_BUSY = timedelta(minutes=30)
LONGEST_BUSY_OF_ROWS = LONGEST_BUSY / 2
MOST_DEFERRED = MAXIMUM_OF_REQUEST // QUERY  # topics, each of which the backfill would read
BUSY = "others, or other sessions of this user, read all past events that may be read: try again later"
MAXIMUM_BACKLOG = 10_000  # events of a topic that a client may be behind
BACKLOG_CHECKED_AFTER = timedelta(seconds=5)  # in the outbox: the check costs a read
RETRIED = frozenset({DeliveryOutcome.OUT_OF_TIME, DeliveryOutcome.BLOCKED})
# After which a connection is closed, and its session notified.
BROKEN = frozenset({DeliveryOutcome.TOO_SLOW, DeliveryOutcome.TOO_LARGE, DeliveryOutcome.UNCONFIRMED})
CLOSING = BROKEN | {DeliveryOutcome.CLOSED}
REPLY_OUTCOMES = {
    PostResult.POSTED: DeliveryOutcome.DONE,
    PostResult.GONE: DeliveryOutcome.GONE,
    PostResult.BUSY: DeliveryOutcome.BLOCKED,
    PostResult.TOO_LARGE: DeliveryOutcome.UNCONFIRMED,  # replies fit; without one the client would wait for ever
    PostResult.UNKNOWN: DeliveryOutcome.BLOCKED,
}


@dataclass(frozen=True, slots=True)
class ReceivedItem:
    """An item received from an outbox, and the time at which it was enqueued."""

    message_id: MessageId
    item: OutboxItem
    queued_at: datetime


@dataclass(frozen=True, slots=True)
class OutboxWriter:
    """Posts the items of outboxes to their connections."""

    snapshots: ConnectionSnapshots
    log: TopicLog
    connections: Connections
    now: Callable[[], datetime]
    texts: EventTexts = field(default_factory=EventTexts)
    redelivered_after: timedelta = timedelta(0)
    """The visibility timeout of outboxes: items of a failed or killed call wait so long, however fast the client is."""

    def read(self, batches: Mapping[ConnectionId, Sequence[OutboxItem]]) -> Mapping[ConnectionId, ConnectionSnapshot]:
        """Read the snapshots of the connections that have items in a batch."""
        return self.snapshots.recent([request_of(connection, items) for connection, items in batches.items()])

    def deliver(
        self,
        connection: ConnectionId,
        incoming: Sequence[ReceivedItem],
        *,
        until: datetime,
        snapshot: ConnectionSnapshot | None = None,
    ) -> BatchResult:
        """Post a connection's items in their order; begin no item and no event after `until`.

        `snapshot` is what `read` returned for the items; without it, it is read.
        """
        if snapshot is None:
            snapshot = self.read({connection: [one.item for one in incoming]})[connection]
        result = BatchResult(connection, snapshot.session, incoming[0].message_id)
        delivery = ConnectionDelivery(self.snapshots, self.connections, self.now, until, result, snapshot)
        wamp, arvados = WampDialect(self.log, self.texts), ArvadosDialect(self.log)
        return _BatchWriter(delivery, wamp, arvados, self.redelivered_after).write(incoming)


@dataclass(frozen=True, slots=True)
class _BatchWriter:
    """Writes one batch, item by item, in the dialect of the connection."""

    delivery: ConnectionDelivery
    wamp: WampDialect
    arvados: ArvadosDialect
    redelivered_after: timedelta
    _newest: dict[RoutingKey, int] = field(default_factory=dict)
    _waiting: dict[MessageId, OutboxItem] = field(default_factory=dict)

    def write(self, incoming: Sequence[ReceivedItem]) -> BatchResult:
        result = self.delivery.result
        try:
            rest = self._write(incoming)
            if result.outcome is DeliveryOutcome.DONE and self._waiting:
                result.outcome = DeliveryOutcome.READS_BUSY
            if result.outcome not in CLOSING | {DeliveryOutcome.GONE}:
                result.not_done = (*self._waiting, *(one.message_id for one in rest))
            self._finish()
        except PastTooLarge as problem:
            self._end(str(problem))
        return result

    def _write(self, incoming: Sequence[ReceivedItem]) -> Sequence[ReceivedItem]:
        """Handle items, and return those from the first on that cannot be handled now.

        A request for past events that waits for reads holds up none of them: its queue is that of all connections. Live
        events are deferred to it; replies are posted, and one that ends its subscription ends the request.
        """
        result = self.delivery.result
        for position, received in enumerate(incoming):
            result.outcome = self._handle(received)
            if result.outcome is DeliveryOutcome.READS_BUSY:
                self._waiting[received.message_id] = received.item
                result.outcome = DeliveryOutcome.DONE
            if result.outcome is not DeliveryOutcome.DONE:
                return incoming[position:] if result.outcome in RETRIED else ()
            if isinstance(received.item, Reply):
                self._end_requests(received.item)
        return ()

    def _end_requests(self, reply: Reply) -> None:
        """End the requests that wait and whose subscription a reply ends, or begins again."""
        for message, item in list(self._waiting.items()):
            if isinstance(item, BackfillRequest | CatchUpRequest) and item.subscription in (reply.begins, reply.ends):
                del self._waiting[message]
                self.delivery.advance(with_done(self.delivery.outbox, item.item_id))

    def _end(self, problem: str) -> None:
        """End a session whose record has no room for what it has been sent, or that requests too many past rows."""
        delivery = self.delivery
        if delivery.snapshot.dialect is Dialect.WAMP:  # ABORT is for sessions that have not joined
            text = serialize(Goodbye({"message": problem}, uris.PAYLOAD_SIZE_EXCEEDED))
            delivery.post(text + delivery.snapshot.separator, is_repeatable=False)
        delivery.result.outcome, delivery.result.not_done = DeliveryOutcome.TOO_LARGE, ()
        delivery.advance(replace(delivery.outbox, pending_backfills={}, watermarks={}))
        self._finish()

    def _finish(self) -> None:
        """Close the connection if the outcome requires it, and save the state."""
        delivery, result = self.delivery, self.delivery.result
        if result.outcome in CLOSING:
            delivery.connections.close(delivery.connection)
        events = result.events + result.backfilled
        result.totals = delivery.outbox.totals.plus(
            events=events, replies=result.replies, size=result.size, lags=result.lags
        )
        delivery.advance(replace(delivery.outbox, totals=result.totals))
        delivery.save()

    def _handle(self, incoming: ReceivedItem) -> DeliveryOutcome:
        if self.delivery.is_late:
            return DeliveryOutcome.OUT_OF_TIME
        item, waited = incoming.item, self._waited(incoming)
        if isinstance(item, Reply):
            return self._post_reply(item, waited)
        if isinstance(item, EventBatch):
            return self._post_batch(item, waited)
        if isinstance(item, CatchUpRequest):
            return self._post_rows(item, waited)
        return self._post_backfill(item, waited) if isinstance(item, BackfillRequest) else DeliveryOutcome.CLOSED

    def _post_rows(self, item: CatchUpRequest, waited: timedelta) -> DeliveryOutcome:
        outcome = self.arvados.catch_up(item, self.delivery)
        if outcome is DeliveryOutcome.READS_BUSY and waited > LONGEST_BUSY_OF_ROWS:
            raise PastTooLarge(BUSY)
        return outcome

    def _post_backfill(self, item: BackfillRequest, waited: timedelta) -> DeliveryOutcome:
        """Post a backfill; one that is too large ends its subscription, by the session, and no event comes before."""
        subscription, delivery, session = item.subscription, self.delivery, self.delivery.snapshot.session
        patience = MAXIMUM_WAIT if session and session.is_anonymous else LONGEST_BUSY
        problem = BUSY
        try:
            outcome = self.wamp.backfill(item, delivery)
        except PastTooLarge as error:
            outcome, problem = DeliveryOutcome.TOO_LARGE, str(error)
        has_too_many = len(delivery.outbox.pending_backfills.get(subscription, ())) > MOST_DEFERRED
        is_starved = outcome is DeliveryOutcome.READS_BUSY and (waited > patience or has_too_many)
        if outcome is not DeliveryOutcome.TOO_LARGE and not is_starved:
            return outcome
        delivery.result.refused[item.item_id] = PastRefused(subscription, problem)
        delivery.advance(without_watermarks(delivery.outbox, {subscription}))
        return DeliveryOutcome.DONE

    def _post_reply(self, item: Reply, waited: timedelta) -> DeliveryOutcome:
        delivery = self.delivery
        action = reply_action(item.item_id, delivery.outbox, waited=waited)
        if action is ItemAction.CLOSE:
            is_unconfirmed = delivery.outbox.unconfirmed_reply is not None
            return DeliveryOutcome.UNCONFIRMED if is_unconfirmed else DeliveryOutcome.TOO_SLOW
        if action is ItemAction.SKIP:
            return DeliveryOutcome.DONE
        delivery.advance(begin_reply(delivery.outbox, item.item_id))
        if not delivery.is_unconfirmed:
            delivery.save()
        result = delivery.post(item.message + delivery.snapshot.separator, is_repeatable=False)
        if result is PostResult.POSTED:
            delivery.result.replies += 1
            delivery.advance(finish_reply(delivery.outbox, item))
        if result is PostResult.BUSY:
            delivery.advance(begin_reply(delivery.outbox, None))
        return REPLY_OUTCOMES[result]

    def _waited(self, incoming: ReceivedItem) -> timedelta:
        """Return how long an item waits for the client at least, without its own backfill and one redelivery."""
        since = max(filter(None, (incoming.queued_at, self.delivery.outbox.caught_up_at)))
        return self.delivery.now() - since - self.redelivered_after

    def _post_batch(self, item: EventBatch, waited: timedelta) -> DeliveryOutcome:
        delivery = self.delivery
        handled = progress_of(delivery.outbox, item.item_id)
        while handled < len(item.events):
            frame = Frame(delivery.snapshot.separator)
            outcome = self._fill(frame, item.events[handled:], waited)
            if outcome is DeliveryOutcome.DONE and frame.events:
                outcome = self._post_frame(frame)
            if outcome is not DeliveryOutcome.DONE:
                delivery.advance(with_progress(delivery.outbox, item.item_id, handled + frame.skipped))
                return outcome
            handled += frame.handled
            if delivery.is_late and handled < len(item.events):
                delivery.advance(with_progress(delivery.outbox, item.item_id, handled))
                return DeliveryOutcome.OUT_OF_TIME
        return DeliveryOutcome.DONE

    def _fill(self, frame: Frame, candidates: Sequence[SubscriptionEvent], waited: timedelta) -> DeliveryOutcome:
        """Handle the first of some events: skip or defer them, or add them to a frame until it is full."""
        delivery = self.delivery
        for candidate in candidates:
            if frame.is_full or (frame.handled and delivery.is_late):
                break
            self._complete(candidate)
            dialect, snapshot = self._dialect, delivery.current()
            action = dialect.action(candidate, snapshot, waited=waited)
            if action is ItemAction.CLOSE or (action is ItemAction.POST and self._is_far_behind(candidate, waited)):
                return DeliveryOutcome.TOO_SLOW
            if action is ItemAction.POST and not frame.add(candidate.event, dialect.text(candidate, snapshot)):
                break
            if action is ItemAction.DEFER:
                delivery.advance(dialect.deferred(candidate, delivery.outbox))
            delivery.result.skipped += action is ItemAction.SKIP
            frame.handled += 1
        return DeliveryOutcome.DONE

    def _post_frame(self, frame: Frame) -> DeliveryOutcome:
        outcome = self.delivery.post_events(frame, self._dialect)
        if outcome is DeliveryOutcome.DONE:
            result = self.delivery.result
            result.events += len(frame.events)
            for event in frame.events:
                result.add_publication(event.publication)
                result.lags.append(self.delivery.now() - event.at)
        return outcome

    @property
    def _dialect(self) -> EventDialect:
        return self.arvados if self.delivery.snapshot.dialect is Dialect.ARVADOS else self.wamp

    def _complete(self, candidate: SubscriptionEvent) -> None:
        """Read the snapshot again if it is not complete and denies an event: rights may have been granted since."""
        delivery = self.delivery
        is_subscribed = candidate.pattern.subscription_id in delivery.outbox.subscribed
        if is_subscribed and not delivery.snapshot.is_complete and not delivery.current().admits(candidate):
            delivery.read()

    def _is_far_behind(self, candidate: SubscriptionEvent, waited: timedelta) -> bool:
        session, event = self.delivery.snapshot.session, candidate.event
        if waited <= BACKLOG_CHECKED_AFTER or session is None or session.realm is None:
            return False
        if event.topic not in self._newest:
            self._newest[event.topic] = self.delivery.snapshots.newest(session.realm, event.topic)
        return self._newest[event.topic] - (event.sequence or 0) > MAXIMUM_BACKLOG
