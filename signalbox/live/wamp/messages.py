"""WAMP's messages as values, by the names that the specification has for them and for their parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

RequestId = NewType("RequestId", int)
SessionId = NewType("SessionId", int)
SubscriptionId = NewType("SubscriptionId", int)
PublicationId = NewType("PublicationId", int)

Dictionary = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Payload:
    """What applications tell one another; a broker passes it on as it is."""

    arguments: tuple[object, ...] = ()
    keywords: Dictionary = field(default_factory=dict)


EMPTY = Payload()


@dataclass(frozen=True, slots=True)
class Hello:
    """A client wants to join a realm."""

    realm: str
    details: Dictionary


@dataclass(frozen=True, slots=True)
class Welcome:
    """A client has joined."""

    session: SessionId
    details: Dictionary


@dataclass(frozen=True, slots=True)
class Abort:
    """A session ends at once, or does not begin; there is no reply to it."""

    details: Dictionary
    reason: str
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Challenge:
    """A client has to show who it is."""

    method: str
    extra: Dictionary


@dataclass(frozen=True, slots=True)
class Authenticate:
    """A client shows who it is."""

    signature: str
    extra: Dictionary

    def __repr__(self) -> str:
        return "Authenticate(…)"  # a ticket is a secret


@dataclass(frozen=True, slots=True)
class Goodbye:
    """A session ends; the other side says so, too."""

    details: Dictionary
    reason: str


@dataclass(frozen=True, slots=True)
class Error:
    """A request was not fulfilled; `request_type` is the number of the request's type."""

    request_type: int
    request: RequestId
    details: Dictionary
    error: str
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Publish:
    """A client publishes."""

    request: RequestId
    options: Dictionary
    topic: str
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Published:
    """What a client published stands."""

    request: RequestId
    publication: PublicationId


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A client wants the events of a topic, or of all topics that a pattern matches."""

    request: RequestId
    options: Dictionary
    topic: str


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A client gets events from here on."""

    request: RequestId
    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A client wants no more events of a subscription."""

    request: RequestId
    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """A client gets no events from here on; with `details`, because the broker took the subscription away."""

    request: RequestId
    details: Dictionary | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something was published."""

    subscription: SubscriptionId
    publication: PublicationId
    details: Dictionary
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Call:
    """A client calls a procedure."""

    request: RequestId
    options: Dictionary
    procedure: str
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Cancel:
    """A client does not want a call's result any more."""

    request: RequestId
    options: Dictionary


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a call."""

    request: RequestId
    details: Dictionary
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Register:
    """A client offers a procedure."""

    request: RequestId
    options: Dictionary
    procedure: str


@dataclass(frozen=True, slots=True)
class Registered:
    """A procedure can be called."""

    request: RequestId
    registration: int


@dataclass(frozen=True, slots=True)
class Unregister:
    """A client offers a procedure no more."""

    request: RequestId
    registration: int


@dataclass(frozen=True, slots=True)
class Unregistered:
    """A procedure can be called no more; with `details`, because the dealer took the registration away."""

    request: RequestId
    details: Dictionary | None = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """A client's procedure was called."""

    request: RequestId
    registration: int
    details: Dictionary
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Nobody waits for an invocation's result any more."""

    request: RequestId
    options: Dictionary


@dataclass(frozen=True, slots=True)
class Yield:
    """What came of an invocation."""

    request: RequestId
    options: Dictionary
    payload: Payload = EMPTY


Message = (
    Hello
    | Welcome
    | Abort
    | Challenge
    | Authenticate
    | Goodbye
    | Error
    | Publish
    | Published
    | Subscribe
    | Subscribed
    | Unsubscribe
    | Unsubscribed
    | Event
    | Call
    | Cancel
    | Result
    | Register
    | Registered
    | Unregister
    | Unregistered
    | Invocation
    | Interrupt
    | Yield
)
