"""The costs of strangers: what AWS bills for one action, and the row of the threat model that states them."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.history.prices import PRICES, SQS
from tests.handlers.billed_calls import READS, WRITES, billed_units, recorded_calls

PAGE = Path(__file__).parents[2] / "docs/security.md"
ITEMS = {SQS: "SQS FIFO request", READS: READS, WRITES: WRITES}
DAY = 86_400
MILLION = 1_000_000
RECORD_KILOBYTES = 5  # the least that Firehose bills


@dataclass
class Bill:
    """The units of an action by the items of the list of prices."""

    units: Counter[str] = field(default_factory=Counter)

    @property
    def usd(self) -> float:
        return sum(PRICES[item] * number for item, number in self.units.items()) / MILLION


@contextmanager
def billed(*, milliseconds: int, megabytes: int = 256, runs: int = 1, **more: float) -> Iterator[Bill]:
    """Yield the bill of the calls within the context, of runs of functions, and of `more` units of API Gateway."""
    bill = Bill(Counter({item.replace("_", " "): number for item, number in more.items()}))
    bill.units["Lambda request"] += runs
    bill.units["Lambda GB-millisecond"] += runs * milliseconds * megabytes / 1024
    with billed_units() as units, recorded_calls() as calls:
        yield bill
    bill.units.update({ITEMS[item]: number for item, number in units.items()})
    bill.units["Firehose kilobyte"] += RECORD_KILOBYTES * calls.count("firehose.PutRecordBatch")


def stated(what: str) -> tuple[float, float]:
    """Return the actions a second of a row of the threat model, and their cost of a day in USD."""
    (row,) = re.findall(rf"^\| {re.escape(what)} \|.*$", PAGE.read_text(), re.MULTILINE)
    rate, usd = row.split("|")[2:4]
    return float(rate.replace(",", "")), float(usd.replace(",", ""))


def day(bill: Bill, rate: float) -> float:
    """Return the cost of a day in USD, with two digits."""
    return float(f"{bill.usd * rate * DAY:.2g}")
