"""Retention of a topic's events by age and count."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from signalbox.exchange.model.records import LiveSettings, Retention
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.audience import UNRESTRICTED

NEVER, LONG_AGO = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)


def retention_of(topic: RoutingKey, rules: Mapping[str, Retention], *, otherwise: Retention) -> Retention:
    """Return the retention of a topic: the rule of its longest matching prefix, compared by characters."""
    prefixes = [prefix for prefix in rules if topic.startswith(prefix)]
    return rules[max(prefixes, key=len)] if prefixes else otherwise


def oldest_kept(live: LiveSettings, *, now: datetime) -> datetime:
    """Return the time since which a realm's events were logged that have not expired."""
    ages = [one.age for one in (live.retention, *live.rules.values()) if one.age is not None]
    return LONG_AGO if len(ages) <= len(live.rules) else now - max(ages)


def may_have_events(topic: RoutingKey, until: datetime, live: LiveSettings, *, now: datetime) -> bool:
    """Return whether a topic whose last event was logged at a time, or before, may have one that has not expired."""
    age = retention_of(topic, live.rules, otherwise=live.retention).age
    return age is None or now - until <= age


def expired(events: Sequence[LoggedEvent], retention: Retention, now: datetime) -> list[LoggedEvent]:
    """Return the events of a topic that have expired, in the order of their publication.

    The topic's newest retained event and its newest retained event with an unrestricted audience never expire.
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
    """Return the index of the newest retained event."""
    places = (
        place
        for place in reversed(range(len(events)))
        if events[place].is_retained and (not unrestricted or _is_unrestricted(events[place]))
    )
    return next(places, None)


def _is_unrestricted(event: LoggedEvent) -> bool:
    return replace(event.audience, excluded_publisher=None) == UNRESTRICTED
