"""The WAMP messages as dataclasses, with the specification's names of messages and fields."""

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
    """The application payload of a message: positional and keyword arguments, which the broker does not change."""

    arguments: tuple[object, ...] = ()
    keywords: Dictionary = field(default_factory=dict)


EMPTY = Payload()


class Message:
    """A WAMP message."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Hello(Message):
    """HELLO: a client requests to join a realm."""

    realm: str
    details: Dictionary


@dataclass(frozen=True, slots=True)
class Welcome(Message):
    """WELCOME: the router opens the session."""

    session: SessionId
    details: Dictionary


@dataclass(frozen=True, slots=True)
class Abort(Message):
    """ABORT: either side ends a session, or refuses to open one. There is no reply."""

    details: Dictionary
    reason: str
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Challenge(Message):
    """CHALLENGE: the router requests authentication."""

    method: str
    extra: Dictionary


@dataclass(frozen=True, slots=True)
class Authenticate(Message):
    """AUTHENTICATE: the client's answer to CHALLENGE, a ticket or a signature."""

    signature: str
    extra: Dictionary

    def __repr__(self) -> str:
        return "Authenticate(…)"  # a ticket is a secret


@dataclass(frozen=True, slots=True)
class Goodbye(Message):
    """GOODBYE: either side closes a session, and the other replies with GOODBYE."""

    details: Dictionary
    reason: str


@dataclass(frozen=True, slots=True)
class Error(Message):
    """ERROR: a request failed. `request_type` is the message type code of the request."""

    request_type: int
    request: RequestId
    details: Dictionary
    error: str
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Publish(Message):
    """PUBLISH: a client publishes an event."""

    request: RequestId
    options: Dictionary
    topic: str
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Published(Message):
    """PUBLISHED: the acknowledgement of a PUBLISH."""

    request: RequestId
    publication: PublicationId


@dataclass(frozen=True, slots=True)
class Subscribe(Message):
    """SUBSCRIBE: a client subscribes to a topic or a pattern."""

    request: RequestId
    options: Dictionary
    topic: str


@dataclass(frozen=True, slots=True)
class Subscribed(Message):
    """SUBSCRIBED: the acknowledgement of a SUBSCRIBE."""

    request: RequestId
    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class Unsubscribe(Message):
    """UNSUBSCRIBE: a client ends a subscription."""

    request: RequestId
    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class Unsubscribed(Message):
    """UNSUBSCRIBED: the acknowledgement of an UNSUBSCRIBE; with `details`, the broker's revocation."""

    request: RequestId
    details: Dictionary | None = None


@dataclass(frozen=True, slots=True)
class Event(Message):
    """EVENT: a published event, sent to a subscriber."""

    subscription: SubscriptionId
    publication: PublicationId
    details: Dictionary
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Call(Message):
    """CALL: a client calls a procedure."""

    request: RequestId
    options: Dictionary
    procedure: str
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Cancel(Message):
    """CANCEL: a client cancels its pending call."""

    request: RequestId
    options: Dictionary


@dataclass(frozen=True, slots=True)
class Result(Message):
    """RESULT: the result of a CALL, sent to the caller."""

    request: RequestId
    details: Dictionary
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Register(Message):
    """REGISTER: a client registers a procedure."""

    request: RequestId
    options: Dictionary
    procedure: str


@dataclass(frozen=True, slots=True)
class Registered(Message):
    """REGISTERED: the acknowledgement of a REGISTER."""

    request: RequestId
    registration: int


@dataclass(frozen=True, slots=True)
class Unregister(Message):
    """UNREGISTER: a client ends a registration."""

    request: RequestId
    registration: int


@dataclass(frozen=True, slots=True)
class Unregistered(Message):
    """UNREGISTERED: the acknowledgement of an UNREGISTER; with `details`, the dealer's revocation."""

    request: RequestId
    details: Dictionary | None = None


@dataclass(frozen=True, slots=True)
class Invocation(Message):
    """INVOCATION: a call, sent to the client that registered the procedure."""

    request: RequestId
    registration: int
    details: Dictionary
    payload: Payload = EMPTY


@dataclass(frozen=True, slots=True)
class Interrupt(Message):
    """INTERRUPT: the caller canceled a pending invocation."""

    request: RequestId
    options: Dictionary


@dataclass(frozen=True, slots=True)
class Yield(Message):
    """YIELD: the result of an INVOCATION, sent by the callee."""

    request: RequestId
    options: Dictionary
    payload: Payload = EMPTY
