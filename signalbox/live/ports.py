"""The ports of sessions, as Protocols.

Errors of the adapters propagate: the message that caused the call is received again, so every call may be made twice.
The ports of topics and subscribers are in `signalbox.live.outbox.ports`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from signalbox.errors import RejectedError
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.history.event import HistoryEvent
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.model.state import JOIN_TIMEOUT, Account, ConnectionId, Killed, Session, Signal
from signalbox.live.outbox.overview_calls import OverviewCall
from signalbox.live.outbox.ports import Outboxes, Subscriber, TopicLog
from signalbox.live.rights.grants import NO_RIGHTS, Rights
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from signalbox.exchange.model.ports import Sender
    from signalbox.exchange.routing.limits import Allowance


class RecordTooLarge(RejectedError):
    """Raised when the record of a session has no room for a change."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A session as it is stored, in an item of some KB; `version` grows with every change.

    `killed` is why it must end, if it must.
    """

    session: Session
    version: int
    killed: Killed | None = None
    kilobytes: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    """A session that has joined a realm."""

    connection: ConnectionId
    listener: Listener
    joined_at: datetime


@dataclass(frozen=True, slots=True)
class Attached:
    """A session that has a subscription, and the time when it subscribed."""

    session: SessionId
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RealmAccess:
    """A user's current access to a realm.

    `live` is None if the realm cannot be joined, `account` is None if the user does not exist. `failures` is the number
    of failed logins of the user within about the last minute.
    """

    live: LiveSettings | None
    account: Account | None
    failures: int = 0

    @property
    def rights(self) -> Rights:
        """Return the user's rights: none without an account."""
        return self.account.rights if self.account else NO_RIGHTS


class Sessions(Protocol):
    """The records of connections. Reads are strongly consistent."""

    def open(self, session: Session) -> bool:
        """Store the record of a new connection; return False if there is one."""

    def find(self, connection: ConnectionId) -> Stored | None:
        """Return a record, or None."""

    def find_all(self, connections: Iterable[ConnectionId]) -> Sequence[Session]:
        """Return the existing sessions of connections."""

    def save(self, session: Session, *, replacing: Stored) -> Stored | None:
        """Store a changed record under the next version; return None if the stored record is not `replacing` any more.

        A killed session is not `replacing` either. Raises `RecordTooLarge`.
        """

    def kill(self, connection: ConnectionId, killed: Killed) -> None:
        """Have a session end with its next message, whichever that is. Killing twice is harmless."""

    def close(self, session: Session) -> None:
        """Record that a session has ended, so that it is never overdue. Closing twice is harmless."""

    def overdue(self, *, now: datetime) -> Iterable[ConnectionId]:
        """Return the connections without a recorded end that are older than API Gateway keeps connections."""


class RealmSessions(Protocol):
    """The joined sessions of realms."""

    def enter(self, realm: ExchangeName, member: Member, *, expires_at: datetime) -> None:
        """Add a session, which may be deleted after `expires_at`. Adding twice is harmless."""

    def leave(self, realm: ExchangeName, listener: Listener) -> None:
        """Remove a session. Removing twice is harmless."""

    def find(self, realm: ExchangeName, session: SessionId) -> Member | None:
        """Return a session, or None."""

    def every(self, realm: ExchangeName) -> Sequence[Member]:
        """Return all sessions of a realm, sorted by id."""

    def of_user(self, realm: ExchangeName, user: UserName) -> Sequence[ConnectionId]:
        """Return the connections of a user's sessions in a realm."""


class Accounts(Protocol):
    """The users of the stage and their access to realms."""

    def access(
        self,
        realm: ExchangeName,
        user: UserName | None,
        *,
        now: datetime,
        token: TokenIdentity | None = None,
        is_anonymous: bool = False,
    ) -> RealmAccess:
        """Return the access of a user to a realm; without a user, only the realm's settings.

        The user of a `token` needs no record. If a user of the stage has the name, there is no account. With
        `is_anonymous` the session joins as the user without the user's secret.
        """

    def count_failure(self, user: UserName, *, now: datetime) -> None:
        """Count a failed login, even for unknown users, so that responses do not reveal which users exist."""

    def end_tokens(self, realm: ExchangeName, user: UserName, *, now: datetime) -> None:
        """Refuse the tokens of a user of an issuer that were issued before a time. Repeating it is harmless."""

    def tokens_ended_at(self, realm: ExchangeName, user: UserName) -> datetime | None:
        """Return the time before which tokens of a user must not have been issued, or None."""


class Inbox(Protocol):
    """The inboxes of connections: frames and signals, in order."""

    def notify(self, connection: ConnectionId, signal: Signal, *, request: str) -> None:
        """Append a signal; the same request twice is one signal."""


class Timers(Protocol):
    """The timers of connections whose next message is awaited."""

    def start(self, connection: ConnectionId, *, after: timedelta = JOIN_TIMEOUT) -> None:
        """Send the signal `Elapsed` to the connection's inbox a little after a time of at most `MAXIMUM_TIMER`."""


class Subscribers(Protocol):
    """The table of subscribers, as sessions use it."""

    def attach(self, realm: ExchangeName, subscriber: Subscriber, *, at: datetime, expires_at: datetime) -> None:
        """Add a subscriber until `expires_at`. Idempotent.

        When this returns, the subscriber is in the result of every later lookup of every router.
        """

    def detach(self, realm: ExchangeName, patterns: Collection[TopicPattern], connection: ConnectionId) -> None:
        """Remove the subscribers of one connection. Idempotent."""


class RealmSubscribers(Protocol):
    """The subscribers of realms as a function instance knows them; a read without changes costs one small call."""

    def watched(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Collection[RoutingKey]:
        """Return the given topics that have subscribers."""

    def shared(
        self, realm: ExchangeName, patterns: Collection[TopicPattern], *, without: SessionId | None = None
    ) -> Collection[TopicPattern]:
        """Return the given patterns to which any session is subscribed, not counting the session `without`."""

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Sequence[Attached]:
        """Return the sessions that are subscribed to a pattern."""

    def room(self, realm: ExchangeName, user: str, *, is_anonymous: bool) -> int:
        """Return the weight of the prefixes and wildcards that a user may still subscribe to, by those that are stored.

        All sessions without a secret are of one user.
        """

    def reserve(self, realm: ExchangeName, subscriber: Subscriber) -> None:
        """Count a subscriber as stored until its subscription is stored."""

    def may_announce(self, realm: ExchangeName, user: str) -> bool:
        """Count a change of a user's subscriptions that has meta events; return False if the user has too many."""


class OverviewCalls(Protocol):
    """The queue of calls that the function `overview` answers."""

    def send(self, call: OverviewCall) -> None:
        """Append a call to its connection's message group; the same call twice is one message."""


@dataclass(frozen=True, slots=True)
class LiveStore:
    """The stored state of sessions and realms."""

    sessions: Sessions
    realm_sessions: RealmSessions
    accounts: Accounts
    log: TopicLog


@dataclass(frozen=True, slots=True)
class LiveSubscribers:
    """The subscribers of realms, as they are stored and as a function instance knows them."""

    stored: Subscribers
    known: RealmSubscribers


@dataclass(frozen=True, slots=True)
class SessionPorts:
    """The ports of sessions; `record` takes history events.

    `random_id` returns the ids of sessions and publications, from 1 to 2^53. `nonce` returns an unguessable text, and
    `pepper` is a secret of the stage.
    """

    store: LiveStore
    subscribers: LiveSubscribers
    inbox: Inbox
    outboxes: Outboxes
    timers: Timers
    sender: "Sender"
    overview_calls: OverviewCalls
    allowance: "Allowance"
    names: StageNames
    pepper: str
    now: Callable[[], datetime]
    random_id: Callable[[], int]
    nonce: Callable[[], str]
    record: Callable[[Sequence[HistoryEvent]], None]
