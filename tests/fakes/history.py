"""The history's events in memory."""

from collections.abc import Collection
from dataclasses import dataclass, field

from signalbox.history.event import HistoryEvent
from signalbox.history.ids import ids_of
from signalbox.history.lookup import EventWindow, unique_events


@dataclass
class MemoryEventLookup:
    """`EventLookup` of a list of events; `asked` has the ids of each call."""

    kept: list[HistoryEvent] = field(default_factory=list)
    asked: list[frozenset[str]] = field(default_factory=list)

    def events(self, ids: Collection[str], window: EventWindow) -> list[HistoryEvent]:
        """Return the events of a window that name one of the ids."""
        self.asked.append(frozenset(ids))
        return unique_events(
            event for event in self.kept if event.occurred_at in window and not ids_of(event).isdisjoint(ids)
        )
