"""The amounts that count in allowances, in memory."""

from collections import Counter
from dataclasses import dataclass, field

from signalbox.exchange.routing.limits import Allowance
from signalbox.live.router.write_limits import MAXIMUM_KILOBYTES


@dataclass
class MemoryAllowanceCounter:
    """`AllowanceCounter` of one instance or several."""

    amounts: Counter[tuple[str, int]] = field(default_factory=Counter)
    calls: int = 0

    def add(self, share: str, amount: int, *, period: int) -> int:
        self.calls += 1
        self.amounts[share, period] += amount
        return self.amounts[share, period]

    def instance(self, most: int = MAXIMUM_KILOBYTES) -> Allowance:
        return Allowance(self, most)
