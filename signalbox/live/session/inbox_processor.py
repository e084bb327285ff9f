"""The processor of a connection's inbox: it decides on each message, stores the session and executes the effects."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from signalbox.errors import UnavailableError
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.identity.compact import is_compact_jwt
from signalbox.live.identity.tokens import TokenIdentity, TokenProblem, TokenRefusal
from signalbox.live.model.effects import Post
from signalbox.live.model.events import Cause
from signalbox.live.model.state import (
    ConnectionId,
    DecisionContext,
    Dialect,
    FrameId,
    Killed,
    Outcome,
    Realm,
    Received,
    RightsChanged,
    Session,
    State,
    part,
    whole,
)
from signalbox.live.ports import RealmAccess, SessionPorts, Stored
from signalbox.live.procedures import meta_events
from signalbox.live.procedures.session_meta import RENEW
from signalbox.live.session import inbox
from signalbox.live.session.effect_executor import EffectExecutor
from signalbox.live.session.inbox import InboxMessage, InvalidInboxMessage
from signalbox.live.session.machine import receive
from signalbox.live.wamp.authentication import AuthMethod
from signalbox.live.wamp.messages import (
    Abort,
    Authenticate,
    Call,
    Hello,
    PublicationId,
    Publish,
    SessionId,
    Subscribe,
)
from signalbox.sarracenia.rights.names import (
    ExchangeName,
    InvalidExchangeName,
    InvalidUserName,
    UserName,
    parse_exchange_name,
    parse_user_name,
)

# A session's item has room for its subscriptions, and for the effects of frames of this size and of one more frame.
MAXIMUM_BATCH_BYTES = 65_536
# A renewal is stored and posted within this time, or else the message is processed again later.
RENEWAL_MARGIN = timedelta(seconds=5)


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
    """Processes the messages of one connection's inbox in order, for one batch."""

    ports: SessionPorts
    connection: ConnectionId
    _access: RealmAccess | None = None
    _watched: Collection[RoutingKey] | None = None

    def process(self, arrivals: Iterable[Arrival]) -> Iterator[FrameId]:
        """Process messages; yield the id of each after its effects were executed.

        The decisions on several messages are stored in one write. Messages of a connection without a record are
        ignored. Raises `InvalidInboxMessage` at an unreadable message, after those before it were processed, and
        `SessionChanged`.
        """
        stored = self.ports.store.sessions.find(self.connection)
        if stored is None:
            yield from (arrival.frame for arrival in arrivals)
            return
        batch: list[_Decision] = []
        for arrival in arrivals:
            if sum(decision.message.size_bytes for decision in batch) > MAXIMUM_BATCH_BYTES:
                stored = self._saved(batch, stored)
                yield from self._executed(batch)
                batch = []
            try:
                messages = _read(arrival, stored.session)
            except InvalidInboxMessage:
                self._saved(batch, stored)
                yield from self._executed(batch)
                raise
            for message, one in zip(messages, arrival.parts(len(messages)), strict=True):
                session = batch[-1].outcome.session if batch else stored.session
                batch.append(self._decision(message, one, session, is_in_batch=bool(batch)))
        self._saved(batch, stored)
        yield from self._executed(batch)

    def _decision(self, message: InboxMessage, arrival: Arrival, session: Session, *, is_in_batch: bool) -> _Decision:
        if isinstance(message.received, RightsChanged):
            self._access = None
        context = self._context(message, arrival, session)
        outcome = receive(session, message.received, context, is_in_batch=is_in_batch)
        return _Decision(arrival, message, outcome, _starts_timer(session, outcome.session, arrival.frame))

    def _saved(self, batch: Sequence[_Decision], stored: Stored) -> Stored:
        if not batch or batch[-1].outcome.session == stored.session:
            return stored
        saved = self.ports.store.sessions.save(batch[-1].outcome.session, replacing=stored)
        if saved is None:
            raise SessionChanged(f"another function instance changed the session of connection {self.connection!r}")
        return saved

    def _executed(self, batch: Sequence[_Decision]) -> Iterator[FrameId]:
        for decision in batch:
            self._execute(decision)
            if decision.arrival.frame == whole(decision.arrival.frame):
                yield decision.arrival.frame

    def _execute(self, decision: _Decision) -> None:
        session, arrival, effects = decision.outcome.session, decision.arrival, decision.outcome.effects
        received = decision.message.received
        if isinstance(received, Killed) and session.token and session.realm and session.identity:
            # The client must not join again with the token that it has.
            user = UserName(session.identity.authid)
            self.ports.store.accounts.end_tokens(session.realm, user, now=arrival.at)
        is_revoked = isinstance(received, RightsChanged)
        cause = Cause(arrival.frame, arrival.at, _reason(decision.outcome, received), is_revoked=is_revoked)
        access, watched = partial(self._access_of, session, arrival.at), partial(self._watched_in, session)
        EffectExecutor(self.ports, session, cause, access, watched).execute(effects)
        if session.state is State.CLOSING and effects:
            self.ports.timers.start(self.connection)
        if decision.starts_timer:
            self.ports.timers.start(self.connection, after=session.deadline - arrival.at)
        if session.state is State.CLOSED:
            self.ports.store.sessions.close(session)

    def _context(self, message: InboxMessage, arrival: Arrival, session: Session) -> DecisionContext:
        context = DecisionContext(
            now=arrival.at,
            session=SessionId(self.ports.random_id()),
            publication=PublicationId(self.ports.random_id()),
            nonce=self.ports.nonce(),
            size_bytes=message.size_bytes,
            frame=arrival.frame,
        )
        if isinstance(message.received, Hello) and session.state is State.OPEN:
            return self._join_context(context, message.received)
        if session.realm is None or not _depends_on_rights(message.received):
            return context
        access = self._access_of(session, arrival.at)
        if access.live is None:
            return context
        realm = Realm(session.realm, self.ports.pepper)
        token = _token_in(message.received, session, access.live)
        if token is not None:
            return self._token_context(replace(context, realm=realm), session, token, access.live.issuers)
        return replace(context, realm=realm, account=access.account, failures=access.failures)

    def _token_context(
        self, context: DecisionContext, session: Session, text: str, issuers: Sequence[Issuer]
    ) -> DecisionContext:
        """Return the context of a token: the result of its verification, and the account of its user."""
        # Not the time of the message: the writer of the outbox must read the new token before the old one is over.
        if session.token is not None and session.token.is_over(self.ports.now() + RENEWAL_MARGIN):
            return replace(context, token=TokenRefusal(TokenProblem.LATE))
        verified = self.ports.tokens.verify(text, issuers)
        if isinstance(verified, TokenRefusal) or session.realm is None:
            return replace(context, token=verified)
        user = UserName(verified.authid)
        ended_at = self.ports.store.accounts.tokens_ended_at(session.realm, user)
        if ended_at is not None and (verified.issued_at is None or verified.issued_at < ended_at):
            return replace(context, token=TokenRefusal(TokenProblem.ENDED))
        self._access = self._find_access(session.realm, user, context.now, verified.identity)
        return replace(context, token=verified, account=self._access.account)

    def _join_context(self, context: DecisionContext, hello: Hello) -> DecisionContext:
        name = _exchange_name(hello.realm)
        if name is None:
            return context
        access = self._find_access(name, _user_name(hello.details.get("authid")), context.now)
        if access.live is None:
            return context
        anonymous = access.live.anonymous if _may_be_anonymous(hello) else None
        account = self._find_access(name, anonymous, context.now, is_anonymous=True).account if anonymous else None
        realm = Realm(name, self.ports.pepper, account, has_issuers=bool(access.live.issuers))
        return replace(context, realm=realm, account=access.account)

    def _access_of(self, session: Session, now: datetime) -> RealmAccess:
        """Return the access of the session's user; read once, since a change sends the signal `RightsChanged`."""
        if self._access is None:
            name = session.identity.authid if session.identity else None
            user = _user_name(name) if session.token is None or name is None else UserName(name)
            found = (
                RealmAccess(None, None)
                if session.realm is None
                else self._find_access(session.realm, user, now, session.token, is_anonymous=session.is_anonymous)
            )
            is_admitted = found.live is not None and session.is_admitted(found.live)
            self._access = found if is_admitted else replace(found, account=None)
        return self._access

    def _watched_in(self, session: Session) -> Collection[RoutingKey]:
        """Return the meta topics of the realm with subscribers; read once, after the batch's messages were sent."""
        if self._watched is None:
            lookup = self.ports.store.subscription_lookup
            self._watched = [] if session.realm is None else lookup.watched(session.realm, meta_events.EVERY)
        return self._watched

    def _find_access(
        self,
        realm: ExchangeName,
        user: UserName | None,
        now: datetime,
        token: TokenIdentity | None = None,
        *,
        is_anonymous: bool = False,
    ) -> RealmAccess:
        return self.ports.store.accounts.access(realm, user, now=now, token=token, is_anonymous=is_anonymous)


def _read(arrival: Arrival, session: Session) -> Sequence[InboxMessage]:
    if arrival.poison is not None:
        raise InvalidInboxMessage(arrival.poison)
    return inbox.messages_of(arrival.body, session)


def _token_in(received: Received, session: Session, live: LiveSettings) -> str | None:
    """Return the token of a message that a realm's issuers are asked about, or None."""
    if isinstance(received, Authenticate):
        return received.signature if live.issuers and is_compact_jwt(received.signature) else None
    if not isinstance(received, Call) or received.procedure != RENEW or session.token is None:
        return None
    argument = received.payload.arguments[0] if received.payload.arguments else None
    return argument if isinstance(argument, str) else None


def _starts_timer(before: Session, after: Session, frame: FrameId) -> bool:
    """Return whether a joined session's next timer is started: also for a frame that is received again.

    Only a token's session and one in Arvados' dialect have timers while they are joined.
    """
    has_timers = after.token is not None or after.dialect is Dialect.ARVADOS
    if not has_timers or after.state is not State.JOINED:
        return False
    return before.state is not State.JOINED or before.deadline != after.deadline or frame in before.frames


def _depends_on_rights(received: Received) -> bool:
    return isinstance(received, Authenticate | Subscribe | Publish | Call | RightsChanged)


def _may_be_anonymous(hello: Hello) -> bool:
    methods = hello.details.get("authmethods")
    return not isinstance(methods, list) or not methods or AuthMethod.ANONYMOUS.value in methods


def _reason(outcome: Outcome, received: Received) -> str:
    """Return why a session ends, if it does: the reason of its ABORT, or what was received."""
    for effect in outcome.effects:
        if isinstance(effect, Post) and isinstance(effect.message, Abort):
            return effect.message.reason
    # Not the reason that a client gives: it may be long, and any text.
    return received.reason if isinstance(received, Killed) else type(received).__name__.lower()


def _exchange_name(text: str) -> ExchangeName | None:
    try:
        return parse_exchange_name(text)
    except InvalidExchangeName:
        return None


def _user_name(text: object) -> UserName | None:
    try:
        return parse_user_name(text) if isinstance(text, str) else None
    except InvalidUserName:
        return None
