"""The report of costs as text, for people."""

from collections.abc import Iterator, Sequence
from datetime import date

from glue_jobs.texts.report_text import Record, block, listed
from glue_jobs.transforms.prices import KNOWN_ON, REGION

PROVISO = (
    f"list prices of {REGION} as we know them, written down on {KNOWN_ON}; look them up before you rely on them",
    "from: every call is full; to: every message comes alone. What a stage costs while nobody comes is not in it",
)


def cost_text(day: date, costs: Sequence[Record]) -> str:
    """Return the report of one UTC day from its rows of `cost_daily`."""
    return block("cost-report", day, _lines(costs))


def _lines(costs: Sequence[Record]) -> Iterator[str]:
    yield f"total {usd(costs)}"
    yield from PROVISO
    for capability in sorted({row["capability"] for row in costs}):
        own = [row for row in costs if row["capability"] == capability]
        lines = [_line(row) for row in sorted(own, key=lambda row: (row["what"], row["item"]))]
        yield from listed(f"{capability} {usd(own)}", lines, of=len(lines))


def usd(costs: Sequence[Record]) -> str:
    """Return what rows cost together."""
    least, most = (sum(row[name] for row in costs) for name in ("usd_least", "usd_most"))
    return f"{least:.6f} to {most:.6f} USD"


def _line(row: Record) -> str:
    units = f"{row['units_least']} to {row['units_most']} {row['item']}"
    return f"{row['what']}, {row['number']} times with {row['bytes']} bytes: {units}, {usd([row])}"
