"""The effects that the session machine returns; each may be executed twice."""

from dataclasses import dataclass

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.messages import Message, Payload, PublicationId, RequestId, SubscriptionId
from signalbox.live.wamp.options import BackfillStart
from signalbox.live.wamp.patterns import TopicPattern


class Effect:
    """An effect of the session machine."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Post(Effect):
    """Append a message to the connection's outbox; `ends` is the subscription that the message ends, if any."""

    message: Message
    ends: SubscriptionId | None = None


@dataclass(frozen=True, slots=True)
class PostText(Effect):
    """Append a text of Arvados' protocol to the connection's outbox; it begins or ends a subscription to log rows.

    With `expects_catch_up` the effect `CatchUp` follows for the subscription that begins.
    """

    text: str
    begins: SubscriptionId | None = None
    ends: SubscriptionId | None = None
    expects_catch_up: bool = False


@dataclass(frozen=True, slots=True)
class CatchUp(Effect):
    """Post the past log rows that a subscription requests, before any further row of the connection."""

    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class RefuseFrame(Effect):
    """Count a frame that is no request of Arvados' protocol."""


@dataclass(frozen=True, slots=True)
class Close(Effect):
    """Close the connection after all items of its outbox were posted."""


@dataclass(frozen=True, slots=True)
class Enter(Effect):
    """Add the session to its realm and publish that it has joined."""

    listener: Listener


@dataclass(frozen=True, slots=True)
class Leave(Effect):
    """Detach the remaining subscriptions, remove the session from its realm and publish that it has ended."""

    listener: Listener
    subscriptions: frozenset[TopicPattern]


@dataclass(frozen=True, slots=True)
class Attach(Effect):
    """Deliver events to a subscription, after the requested past events.

    Its SUBSCRIBED is in the outbox before, so no event can overtake it.
    """

    pattern: TopicPattern
    get_retained: bool
    history: BackfillStart | None


@dataclass(frozen=True, slots=True)
class Detach(Effect):
    """Stop the delivery of events to a subscription."""

    pattern: TopicPattern


@dataclass(frozen=True, slots=True)
class Distribute(Effect):
    """Publish an event; PUBLISHED answers a `request` when the event is in every subscriber's outbox."""

    publication: PublicationId
    topic: RoutingKey
    payload: Payload
    audience: Audience
    disclosed: Listener | None
    is_retained: bool
    request: RequestId | None


@dataclass(frozen=True, slots=True)
class AnswerCall(Effect):
    """Answer a call of a procedure in the table of procedures."""

    request: RequestId
    procedure: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class Drop(Effect):
    """Count a refused publication whose publisher has not requested an acknowledgement."""

    error: str


@dataclass(frozen=True, slots=True)
class CountFailure(Effect):
    """Count a failed login of a user, up to the number that shows that the client should slow down.

    A refused token has a `reason` and no `authid`, since every client can send one with any name.
    """

    authid: str
    reason: str = ""
