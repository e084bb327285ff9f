"""The KB that publishers have published, in memory."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field

from signalbox.live.router.write_limits import PublisherLimits


@dataclass
class MemoryKilobytes:
    """`KilobyteCounter` of one instance or several."""

    written: Counter[tuple[str, int]] = field(default_factory=Counter)
    calls: int = 0

    def add(self, share: str, kilobytes: int, *, period: int) -> int:
        self.calls += 1
        self.written[share, period] += kilobytes
        return self.written[share, period]

    def instance(self) -> PublisherLimits:
        return PublisherLimits(self, nullcontext())
