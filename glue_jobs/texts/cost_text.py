"""The text of the cost report."""

from collections.abc import Iterator, Sequence
from datetime import date

from glue_jobs.texts.report_text import ReportRow, report_block, titled_list
from signalbox.history.prices import PRICES_DATE, REGION

DISCLAIMER = (
    f"list prices of {REGION}, as of {PRICES_DATE}; check them before you rely on them",
    "lower bound: every call is full; upper bound: one message in each call. The cost of an idle stage is not included",
)


def cost_text(day: date, costs: Sequence[ReportRow]) -> str:
    """Return the report of a UTC day from its rows of `cost_daily`."""
    return report_block("cost-report", day, _lines(costs))


def _lines(costs: Sequence[ReportRow]) -> Iterator[str]:
    yield f"total {cost_range(costs)}"
    yield from DISCLAIMER
    for capability in sorted({row["capability"] for row in costs}):
        own = [row for row in costs if row["capability"] == capability]
        lines = [_line(row) for row in sorted(own, key=lambda row: (row["what"], row["item"]))]
        yield from titled_list(f"{capability} {cost_range(own)}", lines, of=len(lines))


def cost_range(costs: Sequence[ReportRow]) -> str:
    """Return the total cost of rows, as lower and upper bound."""
    least, most = (sum(row[name] for row in costs) for name in ("usd_least", "usd_most"))
    return f"{least:.6f} to {most:.6f} USD"


def _line(row: ReportRow) -> str:
    units = f"{row['units_least']} to {row['units_most']} {row['item']}"
    return f"{row['what']}, {row['number']} times with {row['bytes']} bytes: {units}, {cost_range([row])}"
