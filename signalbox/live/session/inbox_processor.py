"""The processor of a connection's inbox: it decides on each message, stores the session and executes the effects."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from math import ceil

from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.identity.tokens import TokenVerifier
from signalbox.live.model.effects import Attach, Distribute, Post
from signalbox.live.model.events import Cause
from signalbox.live.model.state import (
    ConnectionId,
    Dialect,
    FrameId,
    Killed,
    Outcome,
    Received,
    RightsChanged,
    Session,
    SessionState,
    part,
    whole,
)
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.ports import RecordTooLarge, SessionPorts, Stored
from signalbox.live.procedures import meta_events
from signalbox.live.router.publication_metadata import message_for, publication_of
from signalbox.live.router.write_limits import admits_record, kilobytes_of, shares_of
from signalbox.live.session import inbox
from signalbox.live.session.decision_context import ContextReader
from signalbox.live.session.effect_executor import FrameEffects
from signalbox.live.session.inbox import InboxMessage, InvalidInboxMessage
from signalbox.live.session.machine import receive
from signalbox.live.wamp import uris
from signalbox.live.wamp.messages import Abort
from signalbox.messages import size_bytes

# A session's item has room for its subscriptions, and for the effects of frames of this size and of one more frame.
MAXIMUM_BATCH_BYTES = 65_536
REVOKED_AT_ONCE = 100  # subscriptions of a session: the effects of a revocation of more are done part by part
# The end of a session whose record has no room for a further message: its subscriptions end, too.
TOO_LARGE = Killed(uris.PAYLOAD_SIZE_EXCEEDED, "the record of this session has no room for its messages")
# Waiting frames would fill the inbox that all sessions share.
TOO_MANY_WRITES = Killed(uris.UNAVAILABLE, "large sessions of this user were written too often: subscribe to less")
OUT_OF_TIME = "the invocation has no time for further messages"


class OutOfTime(UnavailableError):
    """Raised when an invocation has no time for the remaining messages of an inbox; they are received again."""


class SessionChanged(UnavailableError):
    """Raised when another function instance changed the session at the same time; the messages are received again."""


class SessionKilled(UnavailableError):
    """Raised when a session was killed since its record was read."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(f"connection {stored.session.connection!r}")
        self.stored = stored


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message of an inbox; `frame` is its SQS message id, and `at` is when it was sent.

    `poison` is why it is not even to be read, or None.
    """

    frame: FrameId
    connection: ConnectionId
    body: str
    at: datetime
    poison: str | None = None

    def parts(self, count: int) -> "Iterator[Arrival]":
        """Yield the arrivals of the messages in a frame. The last one has the id of the frame."""
        for position in range(count - 1):
            yield replace(self, frame=part(self.frame, position))
        yield self


@dataclass(frozen=True, slots=True)
class _Decision:
    """An inbox message and the outcome of the decision on it; `starts_timer` until the session's deadline."""

    arrival: Arrival
    message: InboxMessage
    outcome: Outcome
    starts_timer: bool


@dataclass(slots=True)
class InboxProcessor:
    """Processes the messages of one connection's inbox in order, for one batch.

    When the invocation `is_late`, nothing more begins, after one message at least.
    """

    ports: SessionPorts
    tokens: TokenVerifier
    connection: ConnectionId
    is_late: Callable[[], bool] = lambda: False
    _context: ContextReader = field(init=False)
    _watched: Collection[RoutingKey] | None = None

    def __post_init__(self) -> None:
        self._context = ContextReader(self.ports, self.tokens)

    def process(self, arrivals: Iterable[Arrival]) -> Iterator[FrameId]:
        """Process messages; yield the id of each after its effects were executed.

        The decisions on several messages are stored in one write. Messages of a connection without a record are
        ignored. Raises `InvalidInboxMessage` at an unreadable message, after those before it were processed,
        `SessionChanged` and `OutOfTime`.
        """
        stored = self.ports.store.sessions.find(self.connection)
        if stored is None:
            yield from (arrival.frame for arrival in arrivals)
            return
        killed = stored.killed or self._above_limit(stored)
        batch: list[_Decision] = []
        for arrival in arrivals:
            if stored.session.state is SessionState.CLOSED and arrival.frame not in map(whole, stored.session.pending):
                stored, batch = (yield from self._executed(batch, stored)), []
                yield arrival.frame  # unread: nothing follows the end of a session
                continue
            is_late = bool(batch) and self.is_late()
            if is_late or sum(decision.message.size_bytes for decision in batch) > MAXIMUM_BATCH_BYTES:
                stored = yield from self._executed(batch, stored)
                batch = []
            if is_late:
                raise OutOfTime(OUT_OF_TIME)
            try:
                self._decide(arrival, batch, stored.session, killed)
            except InvalidInboxMessage:
                yield from self._executed(batch, stored)
                raise
        yield from self._executed(batch, stored)

    def _above_limit(self, stored: Stored) -> Killed | None:
        """Count the write of a record; return the session's end if its user has written too much, otherwise None."""
        if stored.session.state is not SessionState.JOINED:
            return None
        is_admitted = admits_record(self.ports.allowance, stored.session, stored.kilobytes, at=self.ports.now())
        return None if is_admitted else TOO_MANY_WRITES

    def _decide(self, arrival: Arrival, batch: list[_Decision], last: Session, killed: Killed | None) -> None:
        """Append the decisions on the messages of an arrival to a batch. Raises `InvalidInboxMessage`."""
        messages = _read(arrival, batch[-1].outcome.session if batch else last)
        if isinstance(messages[0][0].received, RightsChanged):
            self._context.forget()
        for message, one in messages:
            session = batch[-1].outcome.session if batch else last
            effective = _effective(message, one.frame, session, killed)
            batch.append(self._decision(effective, one, session, is_in_batch=bool(batch)))

    def _decision(self, message: InboxMessage, arrival: Arrival, session: Session, *, is_in_batch: bool) -> _Decision:
        # The wait for a client's GOODBYE ends whatever waits before it.
        now = max(arrival.at, self.ports.now()) if session.state is SessionState.CLOSING else arrival.at
        context = self._context.read(message, session, frame=arrival.frame, now=now)
        outcome = receive(session, message.received, context, is_in_batch=is_in_batch)
        if whole(arrival.frame) not in session.frames and self._is_above_limit(outcome, arrival.at):
            context = replace(context, is_above_limit=True)
            outcome = receive(session, message.received, context, is_in_batch=is_in_batch)
        self._reserve(outcome)
        return _Decision(arrival, message, outcome, _starts_timer(session, outcome.session, arrival.frame))

    def _is_above_limit(self, outcome: Outcome, at: datetime) -> bool:
        """Count the publication of a new decision, if it has one; return whether its publisher has published enough."""
        for effect in outcome.effects:
            if isinstance(effect, Distribute):
                said = publication_of(effect, outcome.session)
                live = self._context.access(outcome.session, at).live or LiveSettings()
                with suppress(RejectedError):  # a message that cannot be published: its effect answers
                    message = message_for(said, order_by=live.order_by, deduplication_id="")
                    kilobytes = kilobytes_of(size_bytes(message), is_retained=effect.is_retained)
                    shares = shares_of(outcome.session, message.group_id)
                    return not self.ports.allowance.admits(shares, kilobytes, at=at)
        return False

    def _reserve(self, outcome: Outcome) -> None:
        """Count the patterns of a decision as attached, before they are."""
        realm, listener = outcome.session.realm, outcome.session.listener
        for effect in outcome.effects:
            if isinstance(effect, Attach) and realm is not None and listener is not None:
                self.ports.subscribers.known.reserve(realm, Subscriber(self.connection, effect.pattern, listener))

    def _saved(self, session: Session, stored: Stored) -> Stored:
        if session == stored.session:
            return stored
        saved = self.ports.store.sessions.save(session, replacing=stored)
        if saved is None:
            found = self.ports.store.sessions.find(self.connection)
            if found is not None and found == replace(stored, killed=found.killed) != stored:
                raise SessionKilled(found)
            raise SessionChanged(f"another function instance changed the session of connection {self.connection!r}")
        return saved

    def _executed(self, batch: Sequence[_Decision], stored: Stored) -> Generator[FrameId, None, Stored]:
        if batch:
            try:
                stored = self._saved(batch[-1].outcome.session, stored)
            except RecordTooLarge:
                batch = self._ended(batch, stored.session, TOO_LARGE)
                stored = self._saved(batch[-1].outcome.session, stored)
            except SessionKilled as problem:
                batch = self._ended(batch, stored.session, problem.stored.killed)
                stored = self._saved(batch[-1].outcome.session, problem.stored)
        has_begun = False
        for number, decision in enumerate(batch):
            if has_begun and self.is_late():
                # Those of a frame that are done must not be done again: it may never fit into the time.
                left = {one.arrival.frame: one.outcome.effects for one in batch[number:]}
                with suppress(SessionKilled):  # they are done again, before the session ends
                    self._saved(replace(stored.session, pending=left), stored)
                raise OutOfTime(OUT_OF_TIME)
            self._execute(decision)
            has_begun |= bool(decision.outcome.effects)
            if decision.arrival.frame == whole(decision.arrival.frame):
                yield decision.arrival.frame
        return stored

    def _ended(self, batch: Sequence[_Decision], session: Session, killed: Killed | None) -> Sequence[_Decision]:
        """Decide on a batch again, whose first new message ends the session."""
        found: list[_Decision] = []
        for one in batch:
            before = found[-1].outcome.session if found else session
            message = _effective(one.message, one.arrival.frame, before, killed)
            found.append(self._decision(message, one.arrival, before, is_in_batch=bool(found)))
        return found

    def _execute(self, decision: _Decision) -> None:
        session, arrival, effects = decision.outcome.session, decision.arrival, decision.outcome.effects
        received = decision.message.received
        is_revoked = isinstance(received, RightsChanged)
        cause = Cause(arrival.frame, arrival.at, _reason(decision.outcome, received), is_revoked=is_revoked)
        access, watched = partial(self._context.access, session, arrival.at), partial(self._watched_in, session)
        FrameEffects(self.ports, session, cause, access, watched).execute(effects)
        if session.state is SessionState.CLOSING and effects:
            self.ports.timers.start(self.connection)
        if decision.starts_timer:
            self.ports.timers.start(self.connection, after=session.deadline - arrival.at)
        if session.state is SessionState.CLOSED:
            self.ports.store.sessions.close(session)

    def _watched_in(self, session: Session) -> Collection[RoutingKey]:
        """Return the meta topics of the realm with subscribers; read once, after the batch's messages were sent."""
        if self._watched is None:
            self._watched = (
                [] if session.realm is None else self.ports.subscribers.known.watched(session.realm, meta_events.EVERY)
            )
        return self._watched


def _read(arrival: Arrival, session: Session) -> list[tuple[InboxMessage, Arrival]]:
    """Return the messages of an arrival, each as one of its parts."""
    if arrival.poison is not None:
        raise InvalidInboxMessage(arrival.poison)
    messages = inbox.messages_of(arrival.body, session)
    if isinstance(messages[0].received, RightsChanged):
        if arrival.frame in session.frames:
            left = [one for one in session.pending if whole(one) == arrival.frame] or [arrival.frame]
            return [(messages[0], replace(arrival, frame=one)) for one in left]
        count = max(ceil(len(session.subscriptions) / REVOKED_AT_ONCE), 1)
        messages = [InboxMessage(RightsChanged(REVOKED_AT_ONCE))] * count
    return list(zip(messages, arrival.parts(len(messages)), strict=True))


def _effective(message: InboxMessage, frame: FrameId, session: Session, killed: Killed | None) -> InboxMessage:
    """Return the message to decide on: for a new one, the end of a session that was killed and has not ended yet."""
    has_ended = session.state in (SessionState.CLOSING, SessionState.CLOSED) or whole(frame) in session.frames
    return message if killed is None or has_ended else InboxMessage(killed)


def _starts_timer(before: Session, after: Session, frame: FrameId) -> bool:
    """Return whether a joined session's next timer is started: also for a frame that is received again.

    Only a token's session and one in Arvados' dialect have timers while they are joined.
    """
    has_timers = after.token is not None or after.dialect is Dialect.ARVADOS
    if not has_timers or after.state is not SessionState.JOINED:
        return False
    return before.state is not SessionState.JOINED or before.deadline != after.deadline or frame in before.frames


def _reason(outcome: Outcome, received: Received) -> str:
    """Return why a session ends, if it does: the reason of its ABORT, or what was received."""
    for effect in outcome.effects:
        if isinstance(effect, Post) and isinstance(effect.message, Abort):
            return effect.message.reason
    # Not the reason that a client gives: it may be long, and any text.
    return received.reason if isinstance(received, Killed) else type(received).__name__.lower()
