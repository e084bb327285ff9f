"""A session as it is kept, what it hears beside messages, and what it has to know to decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from signalbox.live.admin.grants import Rights
from signalbox.live.session.effects import Effect
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.authentication import Credentials, Identity
from signalbox.live.wamp.codec import MalformedFrame
from signalbox.live.wamp.messages import Message, PublicationId, SessionId, SubscriptionId
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Role

ConnectionId = NewType("ConnectionId", str)
FrameId = NewType("FrameId", str)

JOIN_TIMEOUT = timedelta(seconds=10)  # from the connection's beginning to WELCOME; and from our GOODBYE to theirs
# A frame comes again before any later one of its connection, and no batch of a FIFO queue holds more than ten.
KEPT_FRAMES = 20


class State(StrEnum):
    """The states of a connection's session."""

    OPEN = "OPEN"  # HELLO is awaited
    CHALLENGED = "CHALLENGED"  # AUTHENTICATE is awaited
    JOINED = "JOINED"
    CLOSING = "CLOSING"  # we said GOODBYE, and theirs is awaited
    CLOSED = "CLOSED"


@dataclass(frozen=True, slots=True)
class Session:
    """The record of a connection. `deadline` is when what is awaited must have come.

    `frames` are the newest that were decided, and `pending` has the effects of the last of them: whoever hears one
    again, after a crash, finds what was to be done. `features` are those that HELLO announced of a subscriber.
    """

    connection: ConnectionId
    opened_at: datetime
    deadline: datetime
    user_agent: str = ""
    state: State = State.OPEN
    realm: ExchangeName | None = None
    session: SessionId | None = None
    identity: Identity | None = None
    challenge: str = ""
    features: frozenset[str] = frozenset()
    subscriptions: Mapping[SubscriptionId, TopicPattern] = field(default_factory=dict)
    frames: tuple[FrameId, ...] = ()
    pending: Mapping[FrameId, tuple[Effect, ...]] = field(default_factory=dict)

    @property
    def listener(self) -> Listener | None:
        """Return the session as others can name it, or None before it has joined."""
        if self.state is not State.JOINED or self.session is None or self.identity is None:
            return None
        return Listener(self.session, self.identity.authid, self.identity.authrole)


def opened(connection: ConnectionId, *, now: datetime, user_agent: str = "") -> Session:
    """Return the session of a new connection."""
    return Session(connection, opened_at=now, deadline=now + JOIN_TIMEOUT, user_agent=user_agent)


@dataclass(frozen=True, slots=True)
class Account:
    """A user of a realm, with the rights there as they are now."""

    name: UserName
    role: Role
    credentials: Credentials
    rights: Rights


@dataclass(frozen=True, slots=True)
class Realm:
    """An exchange that may be joined. `anonymous` is who is joined as without a secret, if that is allowed."""

    name: ExchangeName
    pepper: str
    anonymous: Account | None = None


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that a decision depends on beside the session and what it hears.

    `now` is when that was said, not when it is looked at. `realm` is the one that HELLO names; `account` is the user
    whom it names, and later the session's own: None if there is none (any more). Ids and nonce are random and fresh.
    `failures` are the wrong secrets that were given for that user lately. `frame` is the id of what was heard, by which
    it is known when it comes again.
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


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection is gone: it said so, or nothing can be posted to it any more."""


@dataclass(frozen=True, slots=True)
class Killed:
    """Somebody wants the session to end."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RightsChanged:
    """The user's rights are others now, or the user is gone."""


Heard = Message | MalformedFrame | Elapsed | Lost | Killed | RightsChanged


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a decision: the session after it, and what is to be done, in this order."""

    session: Session
    effects: tuple[Effect, ...] = ()


def moved(session: Session, state: State, *effects: Effect) -> Outcome:
    """Return the outcome of going to another state."""
    return Outcome(replace(session, state=state), effects)
