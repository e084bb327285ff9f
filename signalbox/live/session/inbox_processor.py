"""What comes of a connection's inbox: one thing after the other is heard, decided, remembered and carried out."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from signalbox.errors import UnavailableError
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.procedures import meta_events
from signalbox.live.session import inbox
from signalbox.live.session.effect_executor import Carrying
from signalbox.live.session.effects import Post
from signalbox.live.session.events import Cause
from signalbox.live.session.inbox import InvalidTold, Told
from signalbox.live.session.machine import receive
from signalbox.live.session.ports import SessionPorts, Standing, Stored
from signalbox.live.session.state import (
    Circumstances,
    ConnectionId,
    FrameId,
    Heard,
    Killed,
    Outcome,
    Realm,
    RightsChanged,
    Session,
    State,
)
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

# A session's record has room for its subscriptions, and for what frames of so many bytes, and one more, want done.
MAXIMUM_ROW_BYTES = 65_536


class SessionChanged(UnavailableError):
    """Raised when somebody else works on a connection's session at the same time: what was heard comes again."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message of an inbox; `frame` is its id, and `at` is when it was sent."""

    frame: FrameId
    connection: ConnectionId
    body: str
    at: datetime


@dataclass(frozen=True, slots=True)
class _Decided:
    """What was heard, and what came of it."""

    arrival: Arrival
    heard: Heard
    size_bytes: int
    outcome: Outcome


@dataclass(slots=True)
class Conversation:
    """Hears what a connection's inbox holds, in its order, during one batch."""

    ports: SessionPorts
    connection: ConnectionId
    _standing: Standing | None = None
    _watched: Collection[RoutingKey] | None = None

    def hear(self, arrivals: Iterable[Arrival]) -> Iterator[FrameId]:
        """Hear what arrived; yield each frame when all that comes of it is done.

        What is decided of several in a row is stored in one write. Of a connection that nobody knows any more
        everything is ignored. Raises `InvalidTold` when it comes to something that is none, and `SessionChanged`.
        """
        stored = self.ports.store.sessions.find(self.connection)
        if stored is None:
            yield from (arrival.frame for arrival in arrivals)
            return
        row: list[_Decided] = []
        for arrival in arrivals:
            if sum(decided.size_bytes for decided in row) > MAXIMUM_ROW_BYTES:
                stored = self._saved(row, stored)
                yield from self._carried_out(row)
                row = []
            try:
                told = inbox.read(arrival.body)
            except InvalidTold:
                self._saved(row, stored)
                yield from self._carried_out(row)
                raise
            row.append(self._decided(told, arrival, row[-1].outcome.session if row else stored.session, row))
        self._saved(row, stored)
        yield from self._carried_out(row)

    def _decided(self, told: Told, arrival: Arrival, session: Session, row: Sequence[_Decided]) -> _Decided:
        if isinstance(told.heard, RightsChanged):
            self._standing = None
        given = self._circumstances(told, arrival, session)
        outcome = receive(session, told.heard, given, is_in_a_row=bool(row))
        return _Decided(arrival, told.heard, told.size_bytes, outcome)

    def _saved(self, row: Sequence[_Decided], stored: Stored) -> Stored:
        if not row or row[-1].outcome.session == stored.session:
            return stored
        saved = self.ports.store.sessions.save(row[-1].outcome.session, replacing=stored)
        if saved is None:
            raise SessionChanged(f"the session of connection {self.connection!r} was changed by somebody else")
        return saved

    def _carried_out(self, row: Sequence[_Decided]) -> Iterator[FrameId]:
        for decided in row:
            self._carry_out(decided)
            yield decided.arrival.frame

    def _carry_out(self, decided: _Decided) -> None:
        session, arrival, effects = decided.outcome.session, decided.arrival, decided.outcome.effects
        is_revoked = isinstance(decided.heard, RightsChanged)
        cause = Cause(arrival.frame, arrival.at, _reason(decided.outcome, decided.heard), is_revoked=is_revoked)
        standing, watched = partial(self._standing_of, session, arrival.at), partial(self._watched_in, session)
        Carrying(self.ports, session, cause, standing, watched).carry_out(effects)
        if session.state is State.CLOSING and effects:
            self.ports.timers.start(self.connection)
        if session.state is State.CLOSED:
            self.ports.store.sessions.close(session)

    def _circumstances(self, told: Told, arrival: Arrival, session: Session) -> Circumstances:
        given = Circumstances(
            now=arrival.at,
            session=SessionId(self.ports.random_id()),
            publication=PublicationId(self.ports.random_id()),
            nonce=self.ports.nonce(),
            size_bytes=told.size_bytes,
            frame=arrival.frame,
        )
        if isinstance(told.heard, Hello) and session.state is State.OPEN:
            return self._who_joins(given, told.heard)
        if session.realm is None or not _depends_on_rights(told.heard):
            return given
        standing = self._standing_of(session, arrival.at)
        if standing.live is None:
            return given
        realm = Realm(session.realm, self.ports.pepper)
        return replace(given, realm=realm, account=standing.account, failures=standing.failures)

    def _who_joins(self, given: Circumstances, hello: Hello) -> Circumstances:
        name = _exchange_name(hello.realm)
        if name is None:
            return given
        standing = self._look(name, _user_name(hello.details.get("authid")), given.now)
        if standing.live is None:
            return given
        anonymous = standing.live.anonymous if _may_be_anonymous(hello) else None
        account = self._look(name, anonymous, given.now).account if anonymous else None
        realm = Realm(name, self.ports.pepper, account)
        return replace(given, realm=realm, account=standing.account)

    def _standing_of(self, session: Session, now: datetime) -> Standing:
        """Return how the session's user stands; asked once, since what is changed meanwhile is heard of later."""
        if self._standing is None:
            user = _user_name(session.identity.authid) if session.identity else None
            self._standing = Standing(None, None) if session.realm is None else self._look(session.realm, user, now)
        return self._standing

    def _watched_in(self, session: Session) -> Collection[RoutingKey]:
        """Return what is watched in the session's realm; asked once, and then all that is heard was said before."""
        if self._watched is None:
            known = self.ports.store.watchers
            self._watched = [] if session.realm is None else known.watched(session.realm, meta_events.EVERY)
        return self._watched

    def _look(self, realm: ExchangeName, user: UserName | None, now: datetime) -> Standing:
        return self.ports.store.accounts.standing(realm, user, now=now)


def _depends_on_rights(heard: Heard) -> bool:
    return isinstance(heard, Authenticate | Subscribe | Publish | Call | RightsChanged)


def _may_be_anonymous(hello: Hello) -> bool:
    methods = hello.details.get("authmethods")
    return not isinstance(methods, list) or not methods or AuthMethod.ANONYMOUS.value in methods


def _reason(outcome: Outcome, heard: Heard) -> str:
    """Return why a session ends, in case it does: what it is told, or what was heard of it."""
    for effect in outcome.effects:
        if isinstance(effect, Post) and isinstance(effect.message, Abort):
            return effect.message.reason
    # Not a client's own words: they may be long, and anything.
    return heard.reason if isinstance(heard, Killed) else type(heard).__name__.lower()


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
