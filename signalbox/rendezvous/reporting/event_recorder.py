"""The recorder of events: it collects them, and writes them to the history, the telemetry and the live counters."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.history.event import HistoryEvent
from signalbox.rendezvous.reporting.counters import distinct_keys, event_counters

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import History, Statistics, Telemetry

# Firehose bills a record as at least 5 KB, and an event has 0.4 KB; a counter is one write, whatever its increment.
COLLECTED_FOR, MOST_COLLECTED = timedelta(seconds=10), 100
# Polls are too many for metrics: their counters are on the page /prometheus.
UNMEASURED = ("proxy_poll",)


@dataclass(slots=True)
class EventRecorder:
    """Records events; it never raises, since a failure of history or counters must not stop a message.

    The first event is written at once, and the following ones together when `COLLECTED_FOR` has passed, when they are
    many, or at `flush`. An instance that ends without `flush` loses what it has collected.
    """

    history: "History"
    statistics: "Statistics"
    telemetry: "Telemetry"
    clock: "Clock"
    collected_for: timedelta = COLLECTED_FOR
    collected: list[HistoryEvent] = field(default_factory=list)
    written_at: datetime | None = None

    def record(self, events: Sequence[HistoryEvent]) -> None:
        """Collect events, and write what was collected if it is time."""
        measured = [event for event in events if event.kind not in UNMEASURED]
        if measured:
            self.telemetry.count(measured)
        self.collected += events
        now = self.clock.now()
        is_due = self.written_at is None or now - self.written_at >= self.collected_for
        if is_due or len(self.collected) >= MOST_COLLECTED:
            self.flush()

    def flush(self) -> None:
        """Write the collected events and add them to the counters of their UTC days."""
        events, self.collected = self.collected, []
        if not events:
            return
        self.written_at = self.clock.now()
        self.history.write(events)
        by_day: dict[date, Counter[str]] = defaultdict(Counter)
        for event in events:
            day = event.occurred_at.astimezone(UTC).date()
            by_day[day].update(event_counters(event))
            by_day[day].update(c for key, c in distinct_keys(event) if self.statistics.first_seen(day, key))
        for day, counters in by_day.items():
            self.statistics.add(day, counters)
