"""The KB that publishers have written, in memory."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from signalbox.live.router.write_limits import PublisherLimits

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


@dataclass
class MemoryKilobytes:
    """`KilobyteCounter` of one instance or several."""

    written: Counter[tuple[str, int]] = field(default_factory=Counter)
    calls: int = 0

    def add(self, publisher: str, kilobytes: int, *, period: int, most: int) -> bool:
        self.calls += 1
        if self.written[publisher, period] + kilobytes > most:
            return False
        self.written[publisher, period] += kilobytes
        return True


def unlimited() -> PublisherLimits:
    return PublisherLimits(MemoryKilobytes(), lambda: NOW)
