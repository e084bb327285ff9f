"""The port of the lookup of events by id."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.history.event import HistoryEvent

DEFAULT_DAYS = 7


@dataclass(frozen=True, slots=True)
class EventWindow:
    """The times of events to look up: from `start`, inclusive, to `end`, exclusive; both have a time zone."""

    start: datetime
    end: datetime

    @classmethod
    def before(cls, now: datetime, *, days: int = DEFAULT_DAYS) -> "EventWindow":
        """Return the window of the last days, which includes the events of this moment."""
        return cls(now - timedelta(days=days), now + timedelta(seconds=1))

    def __contains__(self, moment: datetime) -> bool:
        """Return whether a time is within the window."""
        return self.start <= moment < self.end


class EventLookup(Protocol):
    """A lookup of events by the ids that they name; a new one for each trace, which sees one state of the history."""

    def events(self, ids: Collection[str], window: EventWindow) -> list[HistoryEvent]:
        """Return the events of a window that name one of the ids, each once, in order of time.

        Call it again with the ids that the result names. Raises `EffectFailed`.
        """


def unique_events(events: Iterable[HistoryEvent]) -> list[HistoryEvent]:
    """Return each event once, as its earliest duplicate, sorted by time and id."""
    found: dict[str, HistoryEvent] = {}
    for event in sorted(events, key=lambda one: (one.occurred_at, one.event_id, one.to_json())):
        found.setdefault(event.event_id, event)
    return list(found.values())
