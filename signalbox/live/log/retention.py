"""Retention of a topic's events by age and count."""

from collections.abc import Mapping
from datetime import UTC, datetime

from signalbox.exchange.model.records import LiveSettings, Retention
from signalbox.exchange.model.topics import RoutingKey

NEVER, LONG_AGO = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)


def retention_of(topic: RoutingKey, rules: Mapping[str, Retention], *, otherwise: Retention) -> Retention:
    """Return the retention of a topic: the rule of its longest matching prefix, compared by characters."""
    prefixes = [prefix for prefix in rules if topic.startswith(prefix)]
    return rules[max(prefixes, key=len)] if prefixes else otherwise


def oldest_kept(live: LiveSettings, *, now: datetime) -> datetime:
    """Return the time since which a realm's events were logged that have not expired."""
    return LONG_AGO if live.longest_age is None else now - live.longest_age


def may_have_events(topic: RoutingKey, until: datetime, live: LiveSettings, *, now: datetime) -> bool:
    """Return whether a topic whose last event was logged at a time, or before, may have one that has not expired."""
    age = retention_of(topic, live.rules, otherwise=live.retention).age
    return age is None or now - until <= age
