"""The only writer to connections: posts the items of an outbox in their order, if they are permitted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol

from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.arvados.rows import LogRow, row_message, row_of
from signalbox.live.log.events import EventTexts, LoggedEvent
from signalbox.live.model.state import ConnectionId, Dialect, Session
from signalbox.live.outbox.backfill import BackfillEvent, BackfillReader
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
from signalbox.live.outbox.frames import Frame
from signalbox.live.outbox.items import (
    BackfillRequest,
    CatchUpRequest,
    CloseRequest,
    EventBatch,
    ItemId,
    OutboxItem,
    Reply,
    SubscriptionEvent,
)
from signalbox.live.outbox.ports import Connections, PostResult, TopicLog
from signalbox.live.outbox.results import DeliveryOutcome, DeliveryResult
from signalbox.live.outbox.rows import RowAudience, defer_row, finish_catch_up, row_action, row_posted
from signalbox.live.rights.grants import NO_RIGHTS, Rights
from signalbox.live.wamp.codec import size_bytes
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.messages import MessageId
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName, UserName

MAXIMUM_BACKLOG = 10_000  # events of a topic that a client may be behind
BACKLOG_CHECKED_AFTER = timedelta(seconds=5)  # in the outbox: the check costs a read
ROWS_READ = 1_000  # of a catch-up at a time, before the rights are read again
SAVED_EVERY = 100  # events of a backfill; with those of a frame, as many may be posted twice when the writer crashes


@dataclass(frozen=True, slots=True)
class ReceivedItem:
    """An item received from an outbox, and the time at which it was enqueued."""

    message_id: MessageId
    item: OutboxItem
    queued_at: datetime


Owner = tuple[ExchangeName, UserName]
"""The realm and the user of a session."""


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """The part of a connection's snapshot that a batch of items needs.

    `owner` is the realm and the user of the batch's events, or None if it has no events.
    """

    connection: ConnectionId
    owner: Owner | None
    has_only_events: bool


@dataclass(frozen=True, slots=True)
class ConnectionSnapshot:
    """The state that decides what may be posted to a connection.

    `outbox` is current. A complete snapshot is current altogether. In another one, `rights` are at most a second old,
    and `session` is as of the last reply that was posted, or current if the batch has replies; `live` is None, and
    without events in the batch there are no rights.

    `session` is None if the connection has none. `live` is None if the session's realm is not a live exchange. There
    are no rights unless the realm's settings admit the session.
    """

    session: Session | None
    outbox: OutboxState
    rights: Rights
    live: LiveSettings | None
    is_complete: bool = True


class ConnectionSnapshots(Protocol):
    """The stored state of connections."""

    def read(self, connection: ConnectionId, *, owner: Owner | None) -> ConnectionSnapshot:
        """Read a complete snapshot. If the caller knows the session's realm and user, `owner` saves a read."""

    def recent(self, requests: Sequence[SnapshotRequest]) -> Mapping[ConnectionId, ConnectionSnapshot]:
        """Read the snapshots of several connections in one call, as far as their batches need them."""

    def save(self, connection: ConnectionId, outbox: OutboxState, *, session: Session | None) -> None:
        """Save the state of a connection's outbox, with a copy of its session."""

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        """Return the sequence number of a topic's newest event, or 0."""


@dataclass(frozen=True, slots=True)
class OutboxWriter:
    """Posts the items of outboxes to their connections."""

    snapshots: ConnectionSnapshots
    log: TopicLog
    connections: Connections
    now: Callable[[], datetime]
    parallel_map: ParallelMap = serial_map
    texts: EventTexts = field(default_factory=EventTexts)

    def read(self, batches: Mapping[ConnectionId, Sequence[OutboxItem]]) -> Mapping[ConnectionId, ConnectionSnapshot]:
        """Read the snapshots of the connections that have items in a batch."""
        return self.snapshots.recent([_request(connection, items) for connection, items in batches.items()])

    def deliver(
        self,
        connection: ConnectionId,
        incoming: Sequence[ReceivedItem],
        *,
        until: datetime,
        snapshot: ConnectionSnapshot | None = None,
    ) -> DeliveryResult:
        """Post a connection's items in their order; begin no event after `until`.

        `snapshot` is what `read` returned for the items; without it, it is read.
        """
        if snapshot is None:
            snapshot = self.read({connection: [one.item for one in incoming]})[connection]
        delivered = DeliveryResult(connection, snapshot.session, incoming[0].message_id)
        return _ConnectionWriter(self, connection, until, snapshot, delivered, snapshot.outbox).write(incoming)


@dataclass(slots=True)
class _ConnectionWriter:
    """The delivery of one batch to one connection."""

    writer: OutboxWriter
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
        for position, received in enumerate(incoming):
            self.delivered.outcome = self._handle(received)
            if self.delivered.outcome in RETRIED:
                self.delivered.not_done = tuple(one.message_id for one in incoming[position:])
            if self.delivered.outcome is not DeliveryOutcome.DONE:
                break
        if self.delivered.outcome in CLOSING:
            self.writer.connections.close(self.connection)
        posted = self.delivered
        events = posted.events + posted.backfilled
        totals = self.outbox.totals.plus(events=events, replies=posted.replies, size=posted.size, lags=posted.lags)
        self._advance(replace(self.outbox, totals=totals))
        self._save()
        posted.totals = totals
        return posted

    def _handle(self, incoming: ReceivedItem) -> DeliveryOutcome:
        item, waited = incoming.item, self._waited(incoming)
        if isinstance(item, Reply):
            return self._post_reply(item, waited)
        if isinstance(item, EventBatch):
            return self._event_batch(item, waited)
        if isinstance(item, CatchUpRequest):
            return self._catch_up(item)
        return self._backfill(item) if isinstance(item, BackfillRequest) else _closed(item)

    def _post_reply(self, item: Reply, waited: timedelta) -> DeliveryOutcome:
        action = reply_action(item.item_id, self.outbox, waited=waited)
        if action is ItemAction.CLOSE:
            is_repeated = item.item_id == self.outbox.unconfirmed_reply
            return DeliveryOutcome.UNCONFIRMED if is_repeated else DeliveryOutcome.TOO_SLOW
        if action is ItemAction.SKIP:
            return DeliveryOutcome.DONE
        self._advance(begin_reply(self.outbox, item.item_id))
        self._save()
        result = self._post(item.message + self._separator, is_repeatable=False)
        if result is PostResult.POSTED:
            self.delivered.replies += 1
            self._advance(finish_reply(self.outbox, item))
        if result is PostResult.BUSY:
            self._advance(begin_reply(self.outbox, None))
        return REPLY_OUTCOMES[result]

    def _waited(self, incoming: ReceivedItem) -> timedelta:
        """Return how long an item has waited for the client to receive earlier ones, not counting its own backfill."""
        since = max(filter(None, (incoming.queued_at, self.outbox.caught_up_at)))
        return self.writer.now() - since

    def _event_batch(self, item: EventBatch, waited: timedelta) -> DeliveryOutcome:
        handled = progress_of(self.outbox, item.item_id)
        while handled < len(item.events):
            frame = self._frame()
            outcome = self._fill(frame, item.events[handled:], waited)
            if outcome is DeliveryOutcome.DONE:
                outcome = self._post_frame(frame)
            if outcome is not DeliveryOutcome.DONE:
                self._advance(with_progress(self.outbox, item.item_id, handled))
                return outcome
            handled += frame.handled
        return DeliveryOutcome.DONE

    def _fill(self, frame: Frame, candidates: Sequence[SubscriptionEvent], waited: timedelta) -> DeliveryOutcome:
        """Handle the first of some events: skip or defer them, or add them to a frame until it is full."""
        for candidate in candidates:
            if frame.is_full:
                break
            self._complete(candidate)
            action = self._action(candidate, waited)
            if action is ItemAction.CLOSE or (action is ItemAction.POST and self._is_far_behind(candidate, waited)):
                return DeliveryOutcome.TOO_SLOW
            if action is ItemAction.POST and not frame.add(candidate, self._text(candidate)):
                break
            if action is ItemAction.DEFER:
                row = self._row(candidate.event)
                self._advance(defer(self.outbox, candidate) if row is None else defer_row(self.outbox, row))
            self.delivered.skipped += action is ItemAction.SKIP
            frame.handled += 1
        return DeliveryOutcome.DONE

    def _post_frame(self, frame: Frame) -> DeliveryOutcome:
        if not frame.events:
            return DeliveryOutcome.DONE
        row = self._row(frame.events[0].event)
        outcome = self._post_events(frame) if row is None else self._post_row(row)
        if outcome is DeliveryOutcome.DONE:
            self.delivered.events += len(frame.events)
            for candidate in frame.events:
                self.delivered.add_publication(candidate.event.publication)
                self.delivered.lags.append(self.writer.now() - candidate.event.at)
        return outcome

    def _frame(self) -> Frame:
        """Return an empty frame for the client: for one event, unless it receives batches."""
        return Frame(self._separator)

    @property
    def _separator(self) -> str:
        return self.snapshot.session.separator if self.snapshot.session else ""

    def _text(self, candidate: SubscriptionEvent, *, is_latest: bool = False) -> str:
        if self._is_arvados:
            return ""  # its row has a number, and is alone in its frame
        return self.writer.texts.text(candidate.pattern, candidate.event, is_retained=is_latest)

    def _action(self, candidate: SubscriptionEvent, waited: timedelta) -> ItemAction:
        snapshot = self.snapshot
        if self._is_arvados:
            return row_action(candidate.event, self._row_audience, waited=waited)
        return event_action(candidate, self.outbox, session=snapshot.session, rights=self._rights(), waited=waited)

    @property
    def _is_arvados(self) -> bool:
        return self.snapshot.session is not None and self.snapshot.session.dialect is Dialect.ARVADOS

    @property
    def _row_audience(self) -> RowAudience | None:
        session = self.snapshot.session
        return None if session is None else RowAudience(session, self._rights(), self.outbox)

    def _row(self, event: LoggedEvent) -> LogRow | None:
        """Return the row of an event for a connection in Arvados' dialect, and None for any other."""
        return row_of(event) if self._is_arvados else None

    def _rights(self) -> Rights:
        """Return the user's rights: none once the token with which the user has joined is over."""
        token = self.snapshot.session.token if self.snapshot.session else None
        return NO_RIGHTS if token is not None and token.is_over(self.writer.now()) else self.snapshot.rights

    def _complete(self, candidate: SubscriptionEvent) -> None:
        """Read the snapshot again if it is not complete and denies an event: rights may have been granted since."""
        snapshot = self.snapshot
        is_denied = not may_post(candidate, self.outbox, session=snapshot.session, rights=self._rights())
        if is_denied and candidate.pattern.subscription_id in self.outbox.subscribed and not snapshot.is_complete:
            self._read()

    def _read(self) -> None:
        self.snapshot = self.writer.snapshots.read(self.connection, owner=owner_of(self.snapshot.session))

    def _is_far_behind(self, candidate: SubscriptionEvent, waited: timedelta) -> bool:
        session, event = self.snapshot.session, candidate.event
        if waited <= BACKLOG_CHECKED_AFTER or session is None or session.realm is None:
            return False
        if event.topic not in self._newest:
            self._newest[event.topic] = self.writer.snapshots.newest(session.realm, event.topic)
        return self._newest[event.topic] - (event.sequence or 0) > MAXIMUM_BACKLOG

    def _backfill(self, request: BackfillRequest) -> DeliveryOutcome:
        subscription = request.pattern.subscription_id
        if request.item_id in self.outbox.done or subscription not in self.outbox.pending_backfills:
            return DeliveryOutcome.DONE
        if not self.snapshot.is_complete:
            self._read()
        session, live = self.snapshot.session, self.snapshot.live
        listener = session.listener if session else None
        if session is None or session.realm is None or listener is None or live is None:
            return DeliveryOutcome.DONE
        reader = BackfillReader(self.writer.log, session.realm, live, self.writer.now(), self.writer.parallel_map)
        backfill = reader.read(request, listener, deferred=self.outbox.pending_backfills[subscription])
        # Read again after the logs: a user whose right was revoked must not receive events published since.
        self._read()
        for frame in self._backfill_frames(request.pattern, backfill.events):
            outcome = self._post_backfill(frame)
            if outcome is not DeliveryOutcome.DONE:
                return outcome
        self._advance(
            finish_backfill(self.outbox, request.item_id, subscription, backfill.settled, now=self.writer.now())
        )
        return DeliveryOutcome.DONE

    def _backfill_frames(self, pattern: TopicPattern, events: Iterable[BackfillEvent]) -> Iterator[Frame]:
        """Yield the frames with a backfill's events that were not posted before and may be posted."""
        frame, newest = self._frame(), dict[RoutingKey, int]()
        for one in events:
            if frame.is_full:
                yield frame
                frame = self._frame()
            candidate, number = SubscriptionEvent(pattern, one.event), one.event.sequence or 0
            if number <= newest.get(one.event.topic, -1) or not self._is_in_backfill(candidate):
                continue
            newest[one.event.topic] = number
            text = self._text(candidate, is_latest=one.is_latest)
            if not frame.add(candidate, text):
                yield frame
                frame = self._frame()
                frame.add(candidate, text)
        if frame.events:
            yield frame

    def _is_in_backfill(self, candidate: SubscriptionEvent) -> bool:
        event = candidate.event
        watermarks = self.outbox.watermarks.get(candidate.pattern.subscription_id)
        if watermarks is not None and (event.sequence or 0) <= watermarks.numbers.get(event.topic, 0):
            return False
        return may_post(candidate, self.outbox, session=self.snapshot.session, rights=self._rights())

    def _post_backfill(self, frame: Frame) -> DeliveryOutcome:
        outcome = self._post_events(frame)
        if outcome is DeliveryOutcome.DONE:
            for candidate in frame.events:
                self.delivered.backfilled += 1
                self.delivered.add_publication(candidate.event.publication)
                self._advance(mark_posted(self.outbox, candidate, now=self.writer.now()))
                if self.delivered.backfilled % SAVED_EVERY == 0:
                    self._save()
        return outcome

    def _catch_up(self, request: CatchUpRequest) -> DeliveryOutcome:
        session, item_id, subscription = self.snapshot.session, request.item_id, request.subscription
        if item_id in self.outbox.done or subscription not in self.outbox.pending_backfills:
            return DeliveryOutcome.DONE
        if session is None or session.realm is None or session.listener is None:
            return DeliveryOutcome.DONE
        now = self.writer.now()
        audience = RowAudience(session, self._rights(), self.outbox)
        start = audience.catch_up_start(progress=progress_of(self.outbox, item_id))
        rows = self.writer.log.rows_after(session.realm, start, now=now)
        while page := list(islice(rows, ROWS_READ)):
            # Read again after the rows: a user whose right was revoked must not receive events published since.
            self._read()
            outcome = self._past_rows(page, item_id)
            if outcome is not DeliveryOutcome.DONE:
                return outcome
        self._advance(finish_catch_up(self.outbox, item_id, subscription, now=self.writer.now()))
        return DeliveryOutcome.DONE

    def _past_rows(self, events: Sequence[LoggedEvent], item_id: ItemId) -> DeliveryOutcome:
        for event in events:
            row, audience = self._row(event), self._row_audience
            if row is None or audience is None or not audience.is_requested(row, event):
                continue
            outcome = self._post_row(row)
            if outcome is not DeliveryOutcome.DONE:
                self._advance(with_progress(self.outbox, item_id, row.id - 1))
                return outcome
            self.delivered.backfilled += 1
            self.delivered.add_publication(event.publication)
            if self.delivered.backfilled % SAVED_EVERY == 0:
                self._save()
        return DeliveryOutcome.DONE

    def _post_row(self, row: LogRow) -> DeliveryOutcome:
        session = self.snapshot.session
        if session is None or self.writer.now() >= self.until:
            return DeliveryOutcome.OUT_OF_TIME
        result = self._post(row_message(row, self.outbox.rows.number + 1), is_repeatable=True)
        if result is PostResult.POSTED:
            self._advance(row_posted(self.outbox, row, session, now=self.writer.now()))
        return EVENT_OUTCOMES[result]

    def _post_events(self, frame: Frame) -> DeliveryOutcome:
        if self.writer.now() >= self.until:
            return DeliveryOutcome.OUT_OF_TIME
        return EVENT_OUTCOMES[self._post(frame.text, is_repeatable=True)]

    def _post(self, text: str, *, is_repeatable: bool) -> PostResult:
        result = self.writer.connections.post(self.connection, text, is_repeatable=is_repeatable)
        if result is PostResult.POSTED:
            self.delivered.size += size_bytes(text)
        return result

    def _advance(self, outbox: OutboxState) -> None:
        self.outbox = outbox

    def _save(self) -> None:
        now = self.writer.now()
        if needs_saving(self.outbox, saved=self._saved, now=now):
            self._saved = self.outbox = pruned(self.outbox, now=now)
            self.writer.snapshots.save(self.connection, self.outbox, session=self.snapshot.session)


def owner_of(session: Session | None) -> Owner | None:
    """Return the realm and the user of a session, or None before it has joined."""
    if session is None or session.realm is None or session.identity is None:
        return None
    return session.realm, UserName(session.identity.authid)


def _request(connection: ConnectionId, items: Sequence[OutboxItem]) -> SnapshotRequest:
    owner = next(((one.realm, one.user) for one in items if isinstance(one, EventBatch)), None)
    return SnapshotRequest(connection, owner, all(isinstance(one, EventBatch) for one in items))


def _closed(item: CloseRequest) -> DeliveryOutcome:
    del item
    return DeliveryOutcome.CLOSED


RETRIED = frozenset({DeliveryOutcome.OUT_OF_TIME, DeliveryOutcome.BLOCKED})
CLOSING = frozenset({DeliveryOutcome.CLOSED, DeliveryOutcome.TOO_SLOW, DeliveryOutcome.UNCONFIRMED})
REPLY_OUTCOMES = {
    PostResult.POSTED: DeliveryOutcome.DONE,
    PostResult.GONE: DeliveryOutcome.GONE,
    PostResult.BUSY: DeliveryOutcome.BLOCKED,
    PostResult.TOO_LARGE: DeliveryOutcome.UNCONFIRMED,  # replies fit; without one the client would wait for ever
    PostResult.UNKNOWN: DeliveryOutcome.BLOCKED,
}
# An event that API Gateway still refuses as too large is skipped: the log has it without its payload.
EVENT_OUTCOMES = {
    PostResult.POSTED: DeliveryOutcome.DONE,
    PostResult.GONE: DeliveryOutcome.GONE,
    PostResult.BUSY: DeliveryOutcome.BLOCKED,
    PostResult.TOO_LARGE: DeliveryOutcome.DONE,
    PostResult.UNKNOWN: DeliveryOutcome.BLOCKED,
}
