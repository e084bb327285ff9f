"""The record of a session, the signals that it receives, and the context of its decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from signalbox.exchange.model.records import LiveSettings
from signalbox.live.arvados.filters import LogSubscription
from signalbox.live.arvados.requests import Request as ArvadosRequest
from signalbox.live.identity.tokens import TokenIdentity, TokenRefusal, VerifiedToken
from signalbox.live.identity.trust import is_trusted
from signalbox.live.model.effects import Effect
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.authentication import AuthMethod, Identity, StoredSecret
from signalbox.live.wamp.batches import separator_for
from signalbox.live.wamp.codec import MalformedFrame
from signalbox.live.wamp.messages import Message, PublicationId, SessionId, SubscriptionId
from signalbox.live.wamp.patterns import GREATEST_WEIGHT, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Role

ConnectionId = NewType("ConnectionId", str)
FrameId = NewType("FrameId", str)  # of a message in a batch of several but the last: with its position, see `part`

JOIN_TIMEOUT = timedelta(seconds=10)  # from the opening of the connection to WELCOME, and from our GOODBYE to theirs
# A frame is received again before any later frame of its connection, and a batch of a FIFO queue has at most ten.
KEPT_FRAMES = 20
# API Gateway ends a connection after two hours; records of it expire a little later.
KEPT_FOR = timedelta(hours=2, minutes=15)
MAXIMUM_TIMER = timedelta(minutes=14)  # an SQS message has a delay of 15 minutes at most


class SessionState(StrEnum):
    """The states of a connection's session."""

    OPEN = "OPEN"  # HELLO is awaited
    CHALLENGED = "CHALLENGED"  # AUTHENTICATE is awaited
    JOINED = "JOINED"
    CLOSING = "CLOSING"  # GOODBYE was sent, and the client's is awaited
    CLOSED = "CLOSED"


class Dialect(StrEnum):
    """The protocol of a connection's client."""

    WAMP = "wamp"
    ARVADOS = "arvados"


@dataclass(frozen=True, slots=True)
class Session:
    """The record of a connection's session. At `deadline` the wait for the client's next message ends.

    `frames` are the ids of the newest frames that were decided, and `pending` has the effects of the last of them: when
    a frame is received again after a crash, its effects are executed again. `features` are the subscriber features that
    HELLO announced. `token` is the identity of a token's user; in `JOINED`, `deadline` is then when the next timer runs
    out. `secret` is the digest of the credentials of a session that joined by them, and empty in any other session, and
    in one that joined before an upgrade. A session in the dialect of Arvados has `log_subscriptions`, in the order of
    the requests, and as long as it has any, one subscription to all topics of its realm. With `is_batched` the client
    receives several messages in one WebSocket message. `network` is the group of the network of its address.
    """

    connection: ConnectionId
    opened_at: datetime
    deadline: datetime
    user_agent: str = ""
    state: SessionState = SessionState.OPEN
    realm: ExchangeName | None = None
    session: SessionId | None = None
    identity: Identity | None = None
    challenge: str = ""
    features: frozenset[str] = frozenset()
    subscriptions: Mapping[SubscriptionId, TopicPattern] = field(default_factory=dict)
    frames: tuple[FrameId, ...] = ()
    pending: Mapping[FrameId, tuple[Effect, ...]] = field(default_factory=dict)
    token: TokenIdentity | None = None
    dialect: Dialect = Dialect.WAMP
    log_subscriptions: tuple[LogSubscription, ...] = ()
    is_batched: bool = False
    secret: str = ""
    network: int | None = None

    @property
    def separator(self) -> str:
        """Return the separator behind each message to the client: none, unless it receives batches."""
        return separator_for(self.user_agent) if self.is_batched else ""

    @property
    def is_anonymous(self) -> bool:
        """Return whether the session joined without a secret or a token."""
        return self.identity is not None and self.identity.method is AuthMethod.ANONYMOUS

    def is_admitted(self, live: LiveSettings, credentials: StoredSecret | None) -> bool:
        """Return whether the present settings of its realm, and the present credentials of its user, admit a session.

        Users without a secret have no credentials.
        """
        has_secret = not self.secret or (credentials is not None and credentials.digest == self.secret)
        return has_secret and self.suits(live)

    def suits(self, live: LiveSettings) -> bool:
        """Return whether the present settings of the session's realm admit it."""
        if self.dialect is Dialect.ARVADOS and not live.arvados:
            return False
        if self.is_anonymous:
            return self.identity is not None and self.identity.authid == live.anonymous
        return self.token is None or is_trusted(self.token, live)

    @property
    def listener(self) -> Listener | None:
        """Return the session's public identity, or None before it has joined."""
        if self.state is not SessionState.JOINED or self.session is None or self.identity is None:
            return None
        return Listener(self.session, self.identity.authid, self.identity.authrole)


def token_deadline(token: TokenIdentity, *, now: datetime) -> datetime:
    """Return when the next timer of a token's session runs out: at the token's end, or before."""
    return min(token.ends_at, now + MAXIMUM_TIMER)


def part(frame: FrameId, position: int) -> FrameId:
    """Return the id of a message in a batch that is not its last one, which has the id of the frame.

    A frame's id is that of its SQS message, a UUID, so it has no slash.
    """
    return FrameId(f"{frame}/{position}")


def whole(frame: FrameId) -> FrameId:
    """Return the id of the frame that a message is in."""
    return FrameId(frame.partition("/")[0])


def opened(
    connection: ConnectionId,
    *,
    now: datetime,
    user_agent: str = "",
    is_batched: bool = False,
    network: int | None = None,
) -> Session:
    """Return the session of a new connection."""
    deadline = now + JOIN_TIMEOUT
    return Session(connection, now, deadline, user_agent=user_agent, is_batched=is_batched, network=network)


@dataclass(frozen=True, slots=True)
class Account:
    """A user of a realm with the current rights there."""

    name: UserName
    role: Role
    credentials: StoredSecret
    rights: Rights


@dataclass(frozen=True, slots=True)
class Realm:
    """An exchange that sessions may join; `anonymous` is the account of clients without a secret, if it allows them.

    With `has_issuers`, the users of identity providers may join by their tokens.
    """

    name: ExchangeName
    pepper: str
    anonymous: Account | None = None
    has_issuers: bool = False


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """Everything that a decision depends on in addition to the session and the received message or signal.

    `now` is when that was sent, not when it is processed. `realm` is the realm that HELLO names; `account` is the user
    that HELLO names, and later the session's own user: None if the user does not exist (any more). Ids and nonce are
    random and fresh. `failures` is the number of recent failed logins of that user. `frame` is the id of the inbox
    message, by which a second receipt is recognized. `token` is the result of the verification of a token in the
    message; `account` is then that of the token's user. `room` is the weight of a pattern that the realm has room for,
    read for messages that subscribe to one. A publication `is_above_limit` of its publisher.
    """

    now: datetime
    session: SessionId
    publication: PublicationId
    nonce: str
    realm: Realm | None = None
    account: Account | None = None
    failures: int = 0
    size_bytes: int = 0
    frame: FrameId | None = None
    token: VerifiedToken | TokenRefusal | None = None
    room: int = GREATEST_WEIGHT
    is_above_limit: bool = False

    @property
    def is_refused(self) -> bool:
        """Return whether the realm was read for the session's user, and does not admit the user any more."""
        return self.realm is not None and self.account is None and self.token is None


@dataclass(frozen=True, slots=True)
class Elapsed:
    """The signal that a timer of the connection has run out."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The signal that the connection is gone: API Gateway reported its end, or posting to it failed for good."""


KILLED = "wamp.close.killed"
NOT_ADMITTED = "the realm does not admit this session any more"


@dataclass(frozen=True, slots=True)
class Killed:
    """The signal that the session must end, by `wamp.session.kill`."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RightsChanged:
    """The signal that the user's rights have changed or the user was removed; `at_once` subscriptions end by it."""

    at_once: int | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """The signal that the connection was opened with a token that was verified: its session has joined."""


@dataclass(frozen=True, slots=True)
class PastRefused:
    """The signal that a subscription must end, since it requests more past events than one delivery reads."""

    subscription: SubscriptionId
    message: str


Signal = Lost | Elapsed | Killed | RightsChanged | Admitted | PastRefused
Received = Message | MalformedFrame | ArvadosRequest | Signal


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a decision: the session after it, and the effects to execute, in order."""

    session: Session
    effects: tuple[Effect, ...] = ()


def moved(session: Session, state: SessionState, *effects: Effect) -> Outcome:
    """Return the outcome of changing to another state."""
    return Outcome(replace(session, state=state), effects)
