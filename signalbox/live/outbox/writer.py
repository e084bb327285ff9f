"""The only writer to connections: what is in an outbox is posted in its order, as far as it may be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.routing_ports import SideBySide, one_by_one
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.grants import Rights
from signalbox.live.log.backfill import BackfillReader
from signalbox.live.log.events import event_for, size_limited
from signalbox.live.outbox.decisions import (
    ItemAction,
    OutboxState,
    begin_reply,
    defer,
    event_action,
    finish_backfill,
    finish_reply,
    mark_posted,
    may_post,
    needs_saving,
    progress_of,
    pruned,
    reply_action,
    with_progress,
)
from signalbox.live.outbox.items import BackfillRequest, CloseRequest, EventBatch, OutboxItem, Reply, SubscriptionEvent
from signalbox.live.outbox.ports import Connections, PostResult, TopicLog
from signalbox.live.outbox.results import DeliveryOutcome, DeliveryResult
from signalbox.live.session.state import ConnectionId, Session
from signalbox.live.wamp.codec import serialize, size_bytes
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName

# How far a client may be behind: it is only looked at when something has waited for a while.
MAXIMUM_BACKLOG = 10_000
BACKLOG_CHECKED_AFTER = timedelta(seconds=5)
SAVED_EVERY = 100  # events of a past: so many may come twice when the writer dies


@dataclass(frozen=True, slots=True)
class ReceivedItem:
    """An item that came of an outbox, and when it was put there."""

    message_id: MessageId
    item: OutboxItem
    queued_at: datetime


@dataclass(frozen=True, slots=True)
class ConnectionSnapshot:
    """All that decides what may be posted to a connection: as it is now, read at once.

    `session` is None when there is none (any more); `live` when its realm is none (any more).
    """

    session: Session | None
    outbox: OutboxState
    rights: Rights
    live: LiveSettings | None


class ConnectionSnapshots(Protocol):
    """What is kept of connections, as their writer needs it."""

    def read(self, connection: ConnectionId, *, belongs_to: tuple[ExchangeName, UserName] | None) -> ConnectionSnapshot:
        """Return how a connection stands. Whose it is may be known before, and saves a read."""
        ...

    def save(self, connection: ConnectionId, outbox: OutboxState) -> None:
        """Keep what was posted."""
        ...

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        """Return the number of a topic's newest event."""
        ...


@dataclass(frozen=True, slots=True)
class OutboxWriter:
    """Posts the items of outboxes."""

    snapshots: ConnectionSnapshots
    log: TopicLog
    connections: Connections
    now: Callable[[], datetime]
    side_by_side: SideBySide = one_by_one

    def deliver(self, connection: ConnectionId, incoming: Sequence[ReceivedItem], *, until: datetime) -> DeliveryResult:
        """Post what came of a connection's outbox, in its order, as far as there is time until a moment."""
        belongs_to = next(
            ((one.item.realm, one.item.user) for one in incoming if isinstance(one.item, EventBatch)), None
        )
        desk = self.snapshots.read(connection, belongs_to=belongs_to)
        delivered = DeliveryResult(connection, desk.session, incoming[0].message_id)
        return _ConnectionWriter(self, connection, until, desk, delivered, desk.outbox).write(incoming)


@dataclass(slots=True)
class _ConnectionWriter:
    """Writes to one connection."""

    deliverer: OutboxWriter
    connection: ConnectionId
    until: datetime
    snapshot: ConnectionSnapshot
    delivered: DeliveryResult
    outbox: OutboxState
    _saved: OutboxState = field(init=False)
    _newest: dict[RoutingKey, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._saved = self.outbox

    def write(self, incoming: Sequence[ReceivedItem]) -> DeliveryResult:
        for place, one in enumerate(incoming):
            self.delivered.outcome = self._handle(one)
            if self.delivered.outcome in RETRIED:
                self.delivered.not_done = tuple(left.message_id for left in incoming[place:])
            if self.delivered.outcome is not DeliveryOutcome.DONE:
                break
        if self.delivered.outcome in CLOSING:
            self.deliverer.connections.close(self.connection)
        posted = self.delivered
        events = posted.events + posted.backfilled
        totals = self.outbox.totals.plus(events=events, replies=posted.replies, size=posted.size, lags=posted.lags)
        self._keep(replace(self.outbox, totals=totals))
        self._save()
        posted.totals = totals
        return posted

    def _handle(self, incoming: ReceivedItem) -> DeliveryOutcome:
        item, waited = incoming.item, self._waited(incoming)
        if isinstance(item, Reply):
            return self._reply(item, waited)
        if isinstance(item, EventBatch):
            return self._bundle(item, waited)
        return self._past(item) if isinstance(item, BackfillRequest) else _closed(item)

    def _reply(self, item: Reply, waited: timedelta) -> DeliveryOutcome:
        step = reply_action(item.item_id, self.outbox, waited=waited)
        if step is ItemAction.CLOSE:
            return (
                DeliveryOutcome.UNCONFIRMED
                if item.item_id == self.outbox.unconfirmed_reply
                else DeliveryOutcome.TOO_SLOW
            )
        if step is ItemAction.SKIP:
            return DeliveryOutcome.DONE
        self._keep(begin_reply(self.outbox, item.item_id))
        self._save()
        result = self._post(item.message, is_repeatable=False)
        if result is PostResult.POSTED:
            self.delivered.replies += 1
            self._keep(finish_reply(self.outbox, item))
        if result is PostResult.BUSY:
            self._keep(begin_reply(self.outbox, None))
        return REPLY_OUTCOMES[result]

    def _waited(self, incoming: ReceivedItem) -> timedelta:
        """Return how long the client had to take what is ahead; the time that its own past took does not count."""
        since = max(filter(None, (incoming.queued_at, self.outbox.caught_up_at)))
        return self.deliverer.now() - since

    def _bundle(self, item: EventBatch, waited: timedelta) -> DeliveryOutcome:
        for place in range(progress_of(self.outbox, item.item_id), len(item.events)):
            end = self._event(item.events[place], waited)
            if end is not DeliveryOutcome.DONE:
                self._keep(with_progress(self.outbox, item.item_id, place))
                return end
        return DeliveryOutcome.DONE

    def _event(self, addressed: SubscriptionEvent, waited: timedelta) -> DeliveryOutcome:
        desk = self.snapshot
        step = event_action(addressed, self.outbox, session=desk.session, rights=desk.rights, waited=waited)
        if step is ItemAction.CLOSE or (step is ItemAction.POST and self._is_far_behind(addressed, waited)):
            return DeliveryOutcome.TOO_SLOW
        if step is ItemAction.DEFER:
            self._keep(defer(self.outbox, addressed))
        if step is not ItemAction.POST:
            self.delivered.skipped += step is ItemAction.SKIP
            return DeliveryOutcome.DONE
        end = self._post_event(addressed)
        if end is DeliveryOutcome.DONE:
            self.delivered.events += 1
            self.delivered.lags.append(self.deliverer.now() - addressed.event.at)
        return end

    def _is_far_behind(self, addressed: SubscriptionEvent, waited: timedelta) -> bool:
        session, event = self.snapshot.session, addressed.event
        if waited <= BACKLOG_CHECKED_AFTER or session is None or session.realm is None:
            return False
        if event.topic not in self._newest:
            self._newest[event.topic] = self.deliverer.snapshots.newest(session.realm, event.topic)
        return self._newest[event.topic] - (event.sequence or 0) > MAXIMUM_BACKLOG

    def _past(self, wish: BackfillRequest) -> DeliveryOutcome:
        subscription, session, live = wish.pattern.subscription_id, self.snapshot.session, self.snapshot.live
        listener = session.listener if session else None
        if wish.item_id in self.outbox.done or subscription not in self.outbox.pending_backfills:
            return DeliveryOutcome.DONE
        if session is None or session.realm is None or listener is None or live is None:
            return DeliveryOutcome.DONE
        reader = BackfillReader(
            self.deliverer.log, session.realm, live, self.deliverer.now(), self.deliverer.side_by_side
        )
        past = reader.read(wish, listener, left=self.outbox.pending_backfills[subscription])
        # Again, and after the logs: who may not see them any more sees nothing that was published since.
        belongs_to = session.realm, UserName(listener.authid)
        self.snapshot = self.deliverer.snapshots.read(self.connection, belongs_to=belongs_to)
        for number, found in enumerate(past.events, start=1):
            end = self._past_event(SubscriptionEvent(wish.pattern, found.event), is_latest=found.is_latest)
            if end is not DeliveryOutcome.DONE:
                return end
            if number % SAVED_EVERY == 0:
                self._save()
        self._keep(finish_backfill(self.outbox, wish.item_id, subscription, past.settled, now=self.deliverer.now()))
        return DeliveryOutcome.DONE

    def _past_event(self, addressed: SubscriptionEvent, *, is_latest: bool) -> DeliveryOutcome:
        marks = self.outbox.watermarks.get(addressed.pattern.subscription_id)
        is_posted = marks is not None and (addressed.event.sequence or 0) <= marks.numbers.get(addressed.event.topic, 0)
        if is_posted or not may_post(
            addressed, self.outbox, session=self.snapshot.session, rights=self.snapshot.rights
        ):
            return DeliveryOutcome.DONE
        end = self._post_event(addressed, is_latest=is_latest)
        if end is DeliveryOutcome.DONE:
            self.delivered.backfilled += 1
            self._keep(mark_posted(self.outbox, addressed, now=self.deliverer.now()))
        return end

    def _post_event(self, addressed: SubscriptionEvent, *, is_latest: bool = False) -> DeliveryOutcome:
        if self.deliverer.now() >= self.until:
            return DeliveryOutcome.OUT_OF_TIME
        text = serialize(size_limited(event_for(addressed.pattern, addressed.event, is_retained=is_latest)))
        return EVENT_OUTCOMES[self._post(text, is_repeatable=True)]

    def _post(self, text: str, *, is_repeatable: bool) -> PostResult:
        result = self.deliverer.connections.post(self.connection, text, is_repeatable=is_repeatable)
        if result is PostResult.POSTED:
            self.delivered.size += size_bytes(text)
        return result

    def _keep(self, outbox: OutboxState) -> None:
        self.outbox = outbox

    def _save(self) -> None:
        now = self.deliverer.now()
        if needs_saving(self.outbox, saved=self._saved, now=now):
            self._saved = self.outbox = pruned(self.outbox, now=now)
            self.deliverer.snapshots.save(self.connection, self.outbox)


def _closed(item: CloseRequest) -> DeliveryOutcome:
    del item
    return DeliveryOutcome.CLOSED


RETRIED = frozenset({DeliveryOutcome.OUT_OF_TIME, DeliveryOutcome.BLOCKED})
CLOSING = frozenset({DeliveryOutcome.CLOSED, DeliveryOutcome.TOO_SLOW, DeliveryOutcome.UNCONFIRMED})
REPLY_OUTCOMES = {
    PostResult.POSTED: DeliveryOutcome.DONE,
    PostResult.GONE: DeliveryOutcome.GONE,
    PostResult.BUSY: DeliveryOutcome.BLOCKED,
    PostResult.TOO_LARGE: DeliveryOutcome.UNCONFIRMED,  # no reply is; the client would wait for it for ever
    PostResult.UNKNOWN: DeliveryOutcome.BLOCKED,
}
# An event that is too large for a connection after all is left out: it stands in the log without its payload.
EVENT_OUTCOMES = {
    PostResult.POSTED: DeliveryOutcome.DONE,
    PostResult.GONE: DeliveryOutcome.GONE,
    PostResult.BUSY: DeliveryOutcome.BLOCKED,
    PostResult.TOO_LARGE: DeliveryOutcome.DONE,
    PostResult.UNKNOWN: DeliveryOutcome.BLOCKED,
}
