"""WAMP's meta events about sessions and subscriptions (advanced profile, «Meta API»)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import rfc3339
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import TopicPattern

ON_JOIN, ON_LEAVE = RoutingKey("wamp.session.on_join"), RoutingKey("wamp.session.on_leave")
ON_CREATE, ON_SUBSCRIBE = RoutingKey("wamp.subscription.on_create"), RoutingKey("wamp.subscription.on_subscribe")
ON_UNSUBSCRIBE, ON_DELETE = RoutingKey("wamp.subscription.on_unsubscribe"), RoutingKey("wamp.subscription.on_delete")
OF_SUBSCRIPTIONS = frozenset({ON_CREATE, ON_SUBSCRIBE, ON_UNSUBSCRIBE, ON_DELETE})
EVERY = (ON_JOIN, ON_LEAVE, *sorted(OF_SUBSCRIPTIONS))
PUBLISHER = "wamp.meta"  # never a user: those of the stage have no dot, and those of issuers do not begin so


@dataclass(frozen=True, slots=True)
class MetaEvent:
    """A meta event: its topic and payload."""

    topic: RoutingKey
    payload: Payload


def joined(listener: Listener, details: Mapping[str, object]) -> MetaEvent:
    """Return the event of a session that has joined; `details` identify its user."""
    return MetaEvent(ON_JOIN, Payload(({"session": listener.session, **details},)))


def left(listener: Listener) -> MetaEvent:
    """Return the event of a session that has ended."""
    return MetaEvent(ON_LEAVE, Payload((listener.session, listener.authid, listener.authrole)))


def attached(listener: Listener, pattern: TopicPattern, *, is_first: bool, at: datetime) -> Iterator[MetaEvent]:
    """Yield the events of a session that subscribes; `is_first` if no other session has the subscription."""
    if is_first:
        yield MetaEvent(ON_CREATE, Payload((listener.session, subscription_details(pattern, created_at=at))))
    yield MetaEvent(ON_SUBSCRIBE, Payload((listener.session, pattern.subscription_id)))


def detached(listener: Listener, pattern: TopicPattern, *, is_last: bool) -> Iterator[MetaEvent]:
    """Yield the events of a session that unsubscribes; `is_last` if no other session has the subscription."""
    yield MetaEvent(ON_UNSUBSCRIBE, Payload((listener.session, pattern.subscription_id)))
    if is_last:
        yield MetaEvent(ON_DELETE, Payload((listener.session, pattern.subscription_id)))


def subscription_details(pattern: TopicPattern, *, created_at: datetime) -> dict[str, object]:
    """Return the details of a subscription: `id`, `created` (RFC 3339), `uri` and `match`."""
    return {
        "id": pattern.subscription_id,
        "created": rfc3339(created_at),
        "uri": pattern.uri,
        "match": pattern.match.value,
    }
