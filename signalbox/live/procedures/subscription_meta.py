"""What WAMP's procedures about subscriptions answer (advanced profile, «Subscriptions Meta API»)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from signalbox.documents import shown
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import rfc3339
from signalbox.live.log.history_request import InvalidArgument
from signalbox.live.wamp.messages import Payload, SessionId
from signalbox.live.wamp.options import InvalidOptions, SubscribeOptions
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription of a realm: since when there is one, and the sessions that have it."""

    pattern: TopicPattern
    created_at: datetime
    sessions: frozenset[SessionId]


@dataclass(frozen=True, slots=True)
class NoSuchSubscription:
    """The answer is an error: nobody has this subscription."""


Reply = Payload | NoSuchSubscription


def answer(procedure: str, payload: Payload, subscriptions: Iterable[Subscription]) -> Reply:
    """Return what a procedure of `ANSWERS` says of a realm's subscriptions. Raises `InvalidArgument`."""
    return ANSWERS[procedure](payload, tuple(subscriptions))


def _listed(payload: Payload, subscriptions: tuple[Subscription, ...]) -> Reply:
    del payload
    ids: dict[str, list[int]] = {match.value: [] for match in MatchPolicy}
    for one in subscriptions:
        ids[one.pattern.match.value].append(one.pattern.subscription_id)
    return Payload((ids,))


def wanted(payload: Payload) -> TopicPattern:
    """Return what a subscription is looked up by. Raises `InvalidArgument`."""
    topic, options = _topic(payload), (payload.arguments[1:2] or (None,))[0]
    if not isinstance(options, Mapping | None):
        raise InvalidArgument(f"arguments[1]: expected the options of SUBSCRIBE, not {shown(options)}")
    try:
        match = SubscribeOptions.parse(options or {}).match
    except InvalidOptions as problem:
        raise InvalidArgument(str(problem)) from problem
    return TopicPattern(match, topic)


def _looked_up(payload: Payload, subscriptions: tuple[Subscription, ...]) -> Reply:
    pattern = wanted(payload)
    is_there = any(one.pattern == pattern for one in subscriptions)
    return Payload((pattern.subscription_id if is_there else None,))


def _matched(payload: Payload, subscriptions: tuple[Subscription, ...]) -> Reply:
    topic = RoutingKey(_topic(payload))
    ids = [one.pattern.subscription_id for one in subscriptions if one.pattern.matches(topic)]
    return Payload((ids or None,))


def _described(payload: Payload, subscriptions: tuple[Subscription, ...]) -> Reply:
    found = _found(payload, subscriptions)
    if found is None:
        return NoSuchSubscription()
    pattern = found.pattern
    details = {"id": pattern.subscription_id, "created": rfc3339(found.created_at), "uri": pattern.uri}
    return Payload(({**details, "match": pattern.match.value},))


def _subscribers(payload: Payload, subscriptions: tuple[Subscription, ...]) -> Reply:
    found = _found(payload, subscriptions)
    return NoSuchSubscription() if found is None else Payload((sorted(found.sessions),))


def _counted(payload: Payload, subscriptions: tuple[Subscription, ...]) -> Reply:
    found = _found(payload, subscriptions)
    return NoSuchSubscription() if found is None else Payload((len(found.sessions),))


ANSWERS: Mapping[str, Callable[[Payload, tuple[Subscription, ...]], Reply]] = {
    "wamp.subscription.list": _listed,
    "wamp.subscription.lookup": _looked_up,
    "wamp.subscription.match": _matched,
    "wamp.subscription.get": _described,
    "wamp.subscription.list_subscribers": _subscribers,
    "wamp.subscription.count_subscribers": _counted,
}


def _topic(payload: Payload) -> str:
    first = payload.arguments[0] if payload.arguments else None
    if not isinstance(first, str):
        raise InvalidArgument(f"arguments[0]: expected a topic, not {shown(first)}")
    return first


def _found(payload: Payload, subscriptions: tuple[Subscription, ...]) -> Subscription | None:
    given = payload.arguments[0] if payload.arguments else None
    if not isinstance(given, int) or isinstance(given, bool):
        raise InvalidArgument(f"arguments[0]: expected a subscription id, not {shown(given)}")
    return next((one for one in subscriptions if one.pattern.subscription_id == given), None)
