"""What sessions ask of the world, as Protocols named for their roles.

All of them let the world's errors through: what ended with one comes again, and everything may happen twice. Topics and
their subscribers are in `live_ports`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.ports import Sender
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.history.event import HistoryEvent
from signalbox.live.outbox.ports import Outboxes, Subscribers, TopicLog
from signalbox.live.procedures.overview import Glances
from signalbox.live.session.state import Account, ConnectionId, Elapsed, Killed, Lost, RightsChanged, Session
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName


@dataclass(frozen=True, slots=True)
class Stored:
    """A session as it is stored; `version` grows with every change."""

    session: Session
    version: int


@dataclass(frozen=True, slots=True)
class Member:
    """A session that has joined a realm."""

    connection: ConnectionId
    listener: Listener
    joined_at: datetime


@dataclass(frozen=True, slots=True)
class Attached:
    """A session that is subscribed to something, and since when."""

    session: SessionId
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """How a user stands in a realm now: `live` is None if that cannot be joined, `account` if there is no such user.

    `failures` are the wrong secrets that were given for the user within the last minute or so.
    """

    live: LiveSettings | None
    account: Account | None
    failures: int = 0


class Sessions(Protocol):
    """The records of connections. Reads see every write that was answered."""

    def open(self, session: Session) -> bool:
        """Store the record of a new connection; say whether there was none."""
        ...

    def find(self, connection: ConnectionId) -> Stored | None:
        """Return a record, or None."""
        ...

    def find_all(self, connections: Iterable[ConnectionId]) -> Sequence[Session]:
        """Return those of the sessions that are there."""
        ...

    def save(self, session: Session, *, replacing: Stored) -> Stored | None:
        """Store a changed record under the next version; None if the stored one is not as `replacing` any more."""
        ...

    def close(self, session: Session) -> None:
        """Note that a session has ended, so that it is never overdue; doing it twice is fine."""
        ...

    def overdue(self, *, now: datetime) -> Iterable[ConnectionId]:
        """Return the connections that must be gone by their age, and of which nobody has said so."""
        ...


class Roster(Protocol):
    """Who has joined a realm."""

    def enter(self, realm: ExchangeName, member: Member, *, expires_at: datetime) -> None:
        """Add a session, which may be forgotten after `expires_at`; one that is there already stays."""
        ...

    def leave(self, realm: ExchangeName, listener: Listener) -> None:
        """Take a session away; one that is gone already is fine."""
        ...

    def find(self, realm: ExchangeName, session: SessionId) -> Member | None:
        """Return a session, or None."""
        ...

    def every(self, realm: ExchangeName) -> Sequence[Member]:
        """Return all sessions of a realm, by id."""
        ...

    def of_user(self, realm: ExchangeName, user: UserName) -> Sequence[ConnectionId]:
        """Return the connections of a user's sessions in a realm."""
        ...


class Accounts(Protocol):
    """What the stage knows of users."""

    def standing(self, realm: ExchangeName, user: UserName | None, *, now: datetime) -> Standing:
        """Return how a user, or nobody, stands in a realm."""
        ...

    def note_failure(self, user: UserName, *, now: datetime) -> None:
        """Count a wrong secret, also for a user whom there is not: nobody is to see the difference."""
        ...


class Inbox(Protocol):
    """The way into connections' inboxes, in which what is heard of each stands in order."""

    def put_frame(self, connection: ConnectionId, text: str, *, request: str) -> None:
        """Put what a client sent behind what is there; the same request twice is one frame."""
        ...

    def tell(self, connection: ConnectionId, told: Lost | Elapsed | Killed | RightsChanged, *, request: str) -> None:
        """Put something else that is heard of a connection behind what is there."""
        ...


class Timers(Protocol):
    """Brings a connection back to mind when what is awaited of it must have come."""

    def start(self, connection: ConnectionId) -> None:
        """Have the inbox told in a little more than `JOIN_TIMEOUT` that time has passed."""
        ...


class Watchers(Protocol):
    """Who watches what happens in a realm, and what it has subscribed to."""

    def watched(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Collection[RoutingKey]:
        """Return those of WAMP's own topics that somebody may be subscribed to."""
        ...

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Sequence[Attached]:
        """Return the sessions that are subscribed to a pattern."""
        ...


class Throttle(Protocol):
    """Counts what happens in a second."""

    def count(self, *, now: datetime) -> int:
        """Count one more in the second of `now`, and return how many those are."""
        ...


@dataclass(frozen=True, slots=True)
class Store:
    """What is kept of sessions, and of those who may have them."""

    sessions: Sessions
    roster: Roster
    accounts: Accounts
    subscribers: Subscribers
    watchers: Watchers
    log: TopicLog


@dataclass(frozen=True, slots=True)
class SessionPorts:
    """What sessions work with; `record` takes history events.

    `random_id` draws the ids of sessions and publications, from 1 to 2^53, and `nonce` a text that nobody can guess, as
    `pepper` is, a secret of the stage.
    """

    store: Store
    inbox: Inbox
    outboxes: Outboxes
    timers: Timers
    sender: Sender
    glances: Glances
    names: StageNames
    pepper: str
    now: Callable[[], datetime]
    random_id: Callable[[], int]
    nonce: Callable[[], str]
    record: Callable[[Sequence[HistoryEvent]], None]
