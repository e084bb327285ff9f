"""The summary of an exchange for the live page, from its counters alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from signalbox.exchange.model.records import ListedExchange, MinuteCounts, latest


@dataclass(frozen=True, slots=True)
class CountedExchange:
    """An exchange and its recent counters."""

    exchange: ListedExchange
    minutes: Sequence[MinuteCounts]


def summary(counted: CountedExchange) -> dict[str, object]:
    """Return an exchange's counts of received, routed, dropped and rejected messages."""
    minutes = counted.minutes
    last_at = latest(*(minute.last_at for minute in minutes))
    return {
        "name": counted.exchange.name,
        "ordered": counted.exchange.resource.is_ordered,
        "received": sum(minute.received for minute in minutes),
        "routed": sum(minute.routed for minute in minutes),
        "dropped": sum(minute.dropped for minute in minutes),
        "rejected": sum(minute.rejected for minute in minutes),
        "last_at": last_at and last_at.isoformat(),
    }
