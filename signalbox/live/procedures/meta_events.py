"""WAMP's meta events: that sessions begin and end, and that subscriptions do (advanced profile, «Meta API»s)."""

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
EVERY = (ON_JOIN, ON_LEAVE, ON_CREATE, ON_SUBSCRIBE, ON_UNSUBSCRIBE, ON_DELETE)
PUBLISHER = "wamp.meta"  # no user's: their names have no dot


@dataclass(frozen=True, slots=True)
class Announcement:
    """A meta event."""

    topic: RoutingKey
    payload: Payload


def joined(listener: Listener, details: Mapping[str, object]) -> Announcement:
    """Tell that a session has begun; `details` say who it is."""
    return Announcement(ON_JOIN, Payload(({"session": listener.session, **details},)))


def left(listener: Listener) -> Announcement:
    """Tell that a session has ended."""
    return Announcement(ON_LEAVE, Payload((listener.session, listener.authid, listener.authrole)))


def attached(listener: Listener, pattern: TopicPattern, *, is_first: bool, at: datetime) -> Iterator[Announcement]:
    """Tell that a session was subscribed, and if it `is_first`, that there is the subscription at all."""
    if is_first:
        yield Announcement(ON_CREATE, Payload((listener.session, subscription_details(pattern, created_at=at))))
    yield Announcement(ON_SUBSCRIBE, Payload((listener.session, pattern.subscription_id)))


def detached(listener: Listener, pattern: TopicPattern, *, is_last: bool) -> Iterator[Announcement]:
    """Tell that a session is not subscribed any more, and if it `is_last`, that nobody is."""
    yield Announcement(ON_UNSUBSCRIBE, Payload((listener.session, pattern.subscription_id)))
    if is_last:
        yield Announcement(ON_DELETE, Payload((listener.session, pattern.subscription_id)))


def subscription_details(pattern: TopicPattern, *, created_at: datetime) -> dict[str, object]:
    """Return what is told of a subscription."""
    return {
        "id": pattern.subscription_id,
        "created": rfc3339(created_at),
        "uri": pattern.uri,
        "match": pattern.match.value,
    }
