"""The recorder of events: it writes them to the history, the telemetry and the live counters."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import TYPE_CHECKING

from signalbox.history.event import HistoryEvent
from signalbox.rendezvous.reporting.counters import distinct_keys, event_counters

if TYPE_CHECKING:
    from signalbox.rendezvous.ports import History, Statistics, Telemetry


@dataclass(frozen=True, slots=True)
class EventRecorder:
    """Records events; it never raises, since a failure of history or counters must not stop a message."""

    history: "History"
    statistics: "Statistics"
    telemetry: "Telemetry"

    def record(self, events: Sequence[HistoryEvent]) -> None:
        """Write the events and add them to the counters of their UTC days."""
        if not events:
            return
        self.history.write(events)
        self.telemetry.count(events)
        by_day: dict[date, Counter[str]] = defaultdict(Counter)
        for event in events:
            day = event.occurred_at.astimezone(UTC).date()
            by_day[day].update(event_counters(event))
            by_day[day].update(c for key, c in distinct_keys(event) if self.statistics.first_seen(day, key))
        for day, counters in by_day.items():
            self.statistics.add(day, counters)
