"""Where events go: into the lake, and into the live counters and metrics that they stand for."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date

from signalbox.history.event import HistoryEvent
from signalbox.rendezvous.ports import History, Statistics, Telemetry
from signalbox.rendezvous.reporting.counters import distinct_keys, event_counters


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records events; neither the lake nor the counters may stop a message, so it never raises."""

    history: History
    statistics: Statistics
    telemetry: Telemetry

    def record(self, events: Sequence[HistoryEvent]) -> None:
        """Write the events and count them on their days."""
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
