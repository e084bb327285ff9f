"""The only writer to connections: what is in an outbox is posted in its order, as far as it may be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.routing_ports import ParallelMap, serial_map
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.grants import Rights
from signalbox.live.log.backfill import PastReader
from signalbox.live.log.events import event_for, postable
from signalbox.live.outbox.decisions import (
    Outbox,
    Step,
    begin,
    catch_up,
    event_step,
    finish,
    fresh,
    leave,
    mark,
    may_post,
    needs_saving,
    progress_of,
    progressed,
    reply_step,
)
from signalbox.live.outbox.items import Addressed, Bundle, Closing, OutboxItem, PastWish, Reply
from signalbox.live.outbox.ports import Connections, PostResult, TopicLog
from signalbox.live.outbox.results import Delivered, End
from signalbox.live.session.state import ConnectionId, Session
from signalbox.live.wamp.codec import size_bytes, written
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName

# How far a client may be behind: it is only looked at when something has waited for a while.
MAXIMUM_BACKLOG = 10_000
LOOKED_AT_AFTER = timedelta(seconds=5)
SAVED_EVERY = 100  # events of a past: so many may come twice when the writer dies


@dataclass(frozen=True, slots=True)
class Incoming:
    """An item that came of an outbox, and when it was put there."""

    message_id: MessageId
    item: OutboxItem
    put_at: datetime


@dataclass(frozen=True, slots=True)
class Desk:
    """All that decides what may be posted to a connection: as it is now, read at once.

    `session` is None when there is none (any more); `live` when its realm is none (any more).
    """

    session: Session | None
    outbox: Outbox
    rights: Rights
    live: LiveSettings | None


class Desks(Protocol):
    """What is kept of connections, as their writer needs it."""

    def read(self, connection: ConnectionId, *, belongs_to: tuple[ExchangeName, UserName] | None) -> Desk:
        """Return how a connection stands. Whose it is may be known before, and saves a read."""
        ...

    def save(self, connection: ConnectionId, outbox: Outbox) -> None:
        """Keep what was posted."""
        ...

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        """Return the number of a topic's newest event."""
        ...


@dataclass(frozen=True, slots=True)
class Deliverer:
    """Posts the items of outboxes."""

    desks: Desks
    log: TopicLog
    connections: Connections
    now: Callable[[], datetime]
    parallel_map: ParallelMap = serial_map

    def deliver(self, connection: ConnectionId, incoming: Sequence[Incoming], *, until: datetime) -> Delivered:
        """Post what came of a connection's outbox, in its order, as far as there is time until a moment."""
        belongs_to = next(((one.item.realm, one.item.user) for one in incoming if isinstance(one.item, Bundle)), None)
        desk = self.desks.read(connection, belongs_to=belongs_to)
        delivered = Delivered(connection, desk.session, incoming[0].message_id)
        return _Writer(self, connection, until, desk, delivered, desk.outbox).write(incoming)


@dataclass(slots=True)
class _Writer:
    """Writes to one connection."""

    deliverer: Deliverer
    connection: ConnectionId
    until: datetime
    desk: Desk
    delivered: Delivered
    outbox: Outbox
    _saved: Outbox = field(init=False)
    _newest: dict[RoutingKey, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._saved = self.outbox

    def write(self, incoming: Sequence[Incoming]) -> Delivered:
        for place, one in enumerate(incoming):
            self.delivered.end = self._handle(one)
            if self.delivered.end in AGAIN:
                self.delivered.not_done = tuple(left.message_id for left in incoming[place:])
            if self.delivered.end is not End.DONE:
                break
        if self.delivered.end in CUT:
            self.deliverer.connections.close(self.connection)
        posted = self.delivered
        events = posted.events + posted.past
        totals = self.outbox.totals.and_more(events=events, replies=posted.replies, size=posted.size, lags=posted.lags)
        self._keep(replace(self.outbox, totals=totals))
        self._save()
        posted.totals = totals
        return posted

    def _handle(self, incoming: Incoming) -> End:
        item, waited = incoming.item, self._waited(incoming)
        if isinstance(item, Reply):
            return self._reply(item, waited)
        if isinstance(item, Bundle):
            return self._bundle(item, waited)
        return self._past(item) if isinstance(item, PastWish) else _closed(item)

    def _reply(self, item: Reply, waited: timedelta) -> End:
        step = reply_step(item.item_id, self.outbox, waited=waited)
        if step is Step.CLOSE:
            return End.DOUBTFUL if item.item_id == self.outbox.begun else End.TOO_SLOW
        if step is Step.SKIP:
            return End.DONE
        self._keep(begin(self.outbox, item.item_id))
        self._save()
        result = self._post(item.message, is_repeatable=False)
        if result is PostResult.POSTED:
            self.delivered.replies += 1
            self._keep(finish(self.outbox, item))
        if result is PostResult.BUSY:
            self._keep(begin(self.outbox, None))
        return REPLY_ENDS[result]

    def _waited(self, incoming: Incoming) -> timedelta:
        """Return how long the client had to take what is ahead; the time that its own past took does not count."""
        since = max(filter(None, (incoming.put_at, self.outbox.caught_up_at)))
        return self.deliverer.now() - since

    def _bundle(self, item: Bundle, waited: timedelta) -> End:
        for place in range(progress_of(self.outbox, item.item_id), len(item.events)):
            end = self._event(item.events[place], waited)
            if end is not End.DONE:
                self._keep(progressed(self.outbox, item.item_id, place))
                return end
        return End.DONE

    def _event(self, addressed: Addressed, waited: timedelta) -> End:
        desk = self.desk
        step = event_step(addressed, self.outbox, session=desk.session, rights=desk.rights, waited=waited)
        if step is Step.CLOSE or (step is Step.POST and self._is_far_behind(addressed, waited)):
            return End.TOO_SLOW
        if step is Step.LEAVE:
            self._keep(leave(self.outbox, addressed))
        if step is not Step.POST:
            self.delivered.skipped += step is Step.SKIP
            return End.DONE
        end = self._post_event(addressed)
        if end is End.DONE:
            self.delivered.events += 1
            self.delivered.lags.append(self.deliverer.now() - addressed.event.at)
        return end

    def _is_far_behind(self, addressed: Addressed, waited: timedelta) -> bool:
        session, event = self.desk.session, addressed.event
        if waited <= LOOKED_AT_AFTER or session is None or session.realm is None:
            return False
        if event.topic not in self._newest:
            self._newest[event.topic] = self.deliverer.desks.newest(session.realm, event.topic)
        return self._newest[event.topic] - (event.sequence or 0) > MAXIMUM_BACKLOG

    def _past(self, wish: PastWish) -> End:
        subscription, session, live = wish.pattern.subscription_id, self.desk.session, self.desk.live
        listener = session.listener if session else None
        if wish.item_id in self.outbox.done or subscription not in self.outbox.awaited:
            return End.DONE
        if session is None or session.realm is None or listener is None or live is None:
            return End.DONE
        reader = PastReader(self.deliverer.log, session.realm, live, self.deliverer.now(), self.deliverer.parallel_map)
        past = reader.read(wish, listener, left=self.outbox.awaited[subscription])
        # Again, and after the logs: who may not see them any more sees nothing that was published since.
        belongs_to = session.realm, UserName(listener.authid)
        self.desk = self.deliverer.desks.read(self.connection, belongs_to=belongs_to)
        for number, found in enumerate(past.events, start=1):
            end = self._past_event(Addressed(wish.pattern, found.event), is_latest=found.is_latest)
            if end is not End.DONE:
                return end
            if number % SAVED_EVERY == 0:
                self._save()
        self._keep(catch_up(self.outbox, wish.item_id, subscription, past.settled, now=self.deliverer.now()))
        return End.DONE

    def _past_event(self, addressed: Addressed, *, is_latest: bool) -> End:
        marks = self.outbox.marks.get(addressed.pattern.subscription_id)
        is_posted = marks is not None and (addressed.event.sequence or 0) <= marks.numbers.get(addressed.event.topic, 0)
        if is_posted or not may_post(addressed, self.outbox, session=self.desk.session, rights=self.desk.rights):
            return End.DONE
        end = self._post_event(addressed, is_latest=is_latest)
        if end is End.DONE:
            self.delivered.past += 1
            self._keep(mark(self.outbox, addressed, now=self.deliverer.now()))
        return end

    def _post_event(self, addressed: Addressed, *, is_latest: bool = False) -> End:
        if self.deliverer.now() >= self.until:
            return End.LATER
        text = written(postable(event_for(addressed.pattern, addressed.event, is_retained=is_latest)))
        return EVENT_ENDS[self._post(text, is_repeatable=True)]

    def _post(self, text: str, *, is_repeatable: bool) -> PostResult:
        result = self.deliverer.connections.post(self.connection, text, is_repeatable=is_repeatable)
        if result is PostResult.POSTED:
            self.delivered.size += size_bytes(text)
        return result

    def _keep(self, outbox: Outbox) -> None:
        self.outbox = outbox

    def _save(self) -> None:
        now = self.deliverer.now()
        if needs_saving(self.outbox, saved=self._saved, now=now):
            self._saved = self.outbox = fresh(self.outbox, now=now)
            self.deliverer.desks.save(self.connection, self.outbox)


def _closed(item: Closing) -> End:
    del item
    return End.CLOSED


AGAIN = frozenset({End.LATER, End.STUCK})
CUT = frozenset({End.CLOSED, End.TOO_SLOW, End.DOUBTFUL})
REPLY_ENDS = {
    PostResult.POSTED: End.DONE,
    PostResult.GONE: End.GONE,
    PostResult.BUSY: End.STUCK,
    PostResult.TOO_LARGE: End.DOUBTFUL,  # no reply is too large; without one the client would wait for ever
    PostResult.UNKNOWN: End.STUCK,
}
# An event that is too large for a connection after all is left out: it stands in the log without its payload.
EVENT_ENDS = {
    PostResult.POSTED: End.DONE,
    PostResult.GONE: End.GONE,
    PostResult.BUSY: End.STUCK,
    PostResult.TOO_LARGE: End.DONE,
    PostResult.UNKNOWN: End.STUCK,
}
