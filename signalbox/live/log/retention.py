"""How long the events of a topic are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from signalbox.exchange.model.records import Retention
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.audience import UNRESTRICTED


def retention_of(topic: RoutingKey, rules: Mapping[str, Retention], *, otherwise: Retention) -> Retention:
    """Return what holds for a topic: the rule of the longest prefix with which it begins, by characters."""
    fitting = [prefix for prefix in rules if topic.startswith(prefix)]
    return rules[max(fitting, key=len)] if fitting else otherwise


def expired(events: Sequence[LoggedEvent], retention: Retention, now: datetime) -> list[LoggedEvent]:
    """Return the events of a topic, in the order of their publication, that are to be kept no longer.

    The topic's latest stays, however old it is: the newest that was to be retained, and the newest of those that is
    for everybody, whoever published it.
    """
    excess = 0 if retention.count is None else max(len(events) - retention.count, 0)
    latest = {_newest(events, unrestricted=True), _newest(events, unrestricted=False)}
    return [
        event
        for place, event in enumerate(events)
        if place not in latest and (place < excess or _is_too_old(event, retention.age, now))
    ]


def _is_too_old(event: LoggedEvent, age: timedelta | None, now: datetime) -> bool:
    return age is not None and now - event.at > age


def _newest(events: Sequence[LoggedEvent], *, unrestricted: bool) -> int | None:
    """Return the place of the newest event that was to be retained."""
    places = (
        place
        for place in reversed(range(len(events)))
        if events[place].is_retained and (not unrestricted or _is_unrestricted(events[place]))
    )
    return next(places, None)


def _is_unrestricted(event: LoggedEvent) -> bool:
    return replace(event.audience, excluded_publisher=None) == UNRESTRICTED
