"""The processor of a connection's inbox: it decides on each message, stores the session and executes the effects."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from signalbox.errors import UnavailableError
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.identity.tokens import TokenVerifier
from signalbox.live.model.effects import Attach, Post
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
from signalbox.live.session import inbox
from signalbox.live.session.decision_context import ContextReader
from signalbox.live.session.effect_executor import FrameEffects
from signalbox.live.session.inbox import InboxMessage, InvalidInboxMessage
from signalbox.live.session.machine import receive
from signalbox.live.wamp import uris
from signalbox.live.wamp.messages import Abort

# A session's item has room for its subscriptions, and for the effects of frames of this size and of one more frame.
MAXIMUM_BATCH_BYTES = 65_536
# A further message of a session whose record has no room: it ends the session, by which its subscriptions end, too.
TOO_LARGE = InboxMessage(Killed(uris.PAYLOAD_SIZE_EXCEEDED, "the record of this session has no room for its messages"))
OUT_OF_TIME = "the invocation has no time for further messages"


class OutOfTime(UnavailableError):
    """Raised when an invocation has no time for the remaining messages of an inbox; they are received again."""


class SessionChanged(UnavailableError):
    """Raised when another function instance changed the session at the same time; the messages are received again."""


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
        batch: list[_Decision] = []
        for arrival in arrivals:
            is_late = bool(batch) and self.is_late()
            if is_late or sum(decision.message.size_bytes for decision in batch) > MAXIMUM_BATCH_BYTES:
                stored = yield from self._executed(batch, stored)
                batch = []
            if is_late:
                raise OutOfTime(OUT_OF_TIME)
            try:
                messages = _read(arrival, stored.session)
            except InvalidInboxMessage:
                yield from self._executed(batch, stored)
                raise
            for message, one in zip(messages, arrival.parts(len(messages)), strict=True):
                session = batch[-1].outcome.session if batch else stored.session
                batch.append(self._decision(message, one, session, is_in_batch=bool(batch)))
        yield from self._executed(batch, stored)

    def _decision(self, message: InboxMessage, arrival: Arrival, session: Session, *, is_in_batch: bool) -> _Decision:
        if isinstance(message.received, RightsChanged):
            self._context.forget()
        context = self._context.read(message, session, frame=arrival.frame, now=arrival.at)
        outcome = receive(session, message.received, context, is_in_batch=is_in_batch)
        self._reserve(outcome)
        return _Decision(arrival, message, outcome, _starts_timer(session, outcome.session, arrival.frame))

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
            raise SessionChanged(f"another function instance changed the session of connection {self.connection!r}")
        return saved

    def _executed(self, batch: Sequence[_Decision], stored: Stored) -> Generator[FrameId, None, Stored]:
        if batch:
            try:
                stored = self._saved(batch[-1].outcome.session, stored)
            except RecordTooLarge:
                batch = self._ended(batch, stored.session)
                stored = self._saved(batch[-1].outcome.session, stored)
        has_begun = False
        for number, decision in enumerate(batch):
            if has_begun and self.is_late():
                # Those of a frame that are done must not be done again: it may never fit into the time.
                left = {one.arrival.frame: one.outcome.effects for one in batch[number:]}
                self._saved(replace(stored.session, pending=left), stored)
                raise OutOfTime(OUT_OF_TIME)
            self._execute(decision)
            has_begun |= bool(decision.outcome.effects)
            if decision.arrival.frame == whole(decision.arrival.frame):
                yield decision.arrival.frame
        return stored

    def _ended(self, batch: Sequence[_Decision], session: Session) -> Sequence[_Decision]:
        """Decide on a batch again that the session's record has no room for: its first new message ends the session."""
        found: list[_Decision] = []
        for one in batch:
            before = found[-1].outcome.session if found else session
            message = TOO_LARGE if before.state is session.state else one.message
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


def _read(arrival: Arrival, session: Session) -> Sequence[InboxMessage]:
    if arrival.poison is not None:
        raise InvalidInboxMessage(arrival.poison)
    return inbox.messages_of(arrival.body, session)


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
