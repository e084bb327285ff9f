"""What the session machine wants done; each may be done twice."""

from dataclasses import dataclass

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.messages import Message, Payload, PublicationId, RequestId, SubscriptionId
from signalbox.live.wamp.options import BackfillStart
from signalbox.live.wamp.patterns import TopicPattern


@dataclass(frozen=True, slots=True)
class Post:
    """Put a message into the connection's outbox, behind all that is there; `ends` is the subscription that it ends."""

    message: Message
    ends: SubscriptionId | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection when all that is in its outbox has been posted."""


@dataclass(frozen=True, slots=True)
class Enter:
    """Tell others that a session has begun."""

    listener: Listener


@dataclass(frozen=True, slots=True)
class Leave:
    """Tell others that a session has ended, and detach what is left of its subscriptions."""

    listener: Listener
    subscriptions: frozenset[TopicPattern]


@dataclass(frozen=True, slots=True)
class Attach:
    """Let events reach a subscription, first what is wanted of the past.

    Its SUBSCRIBED stands in the outbox by then, so no event can overtake it there.
    """

    pattern: TopicPattern
    get_retained: bool
    history: BackfillStart | None


@dataclass(frozen=True, slots=True)
class Detach:
    """Let no more events reach a subscription."""

    pattern: TopicPattern


@dataclass(frozen=True, slots=True)
class Distribute:
    """Publish an event; to a `request` PUBLISHED is replied when the event stands in every outbox."""

    publication: PublicationId
    topic: RoutingKey
    payload: Payload
    audience: Audience
    disclosed: Listener | None
    is_retained: bool
    request: RequestId | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Reply to a call of one of the procedures that we have."""

    request: RequestId
    procedure: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class Drop:
    """Count a publication that is not distributed and whose publisher does not wait for a reply."""

    error: str


@dataclass(frozen=True, slots=True)
class NoteFailure:
    """Count a secret that was wrong: whoever tries many is refused for a while."""

    authid: str


Effect = Post | Close | Enter | Leave | Attach | Detach | Distribute | Answer | Drop | NoteFailure
