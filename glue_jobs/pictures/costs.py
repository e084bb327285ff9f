"""The picture of the cost report."""

import math
from collections.abc import Sequence
from datetime import date

from glue_jobs.pictures.panels import Bar, Series, draw_bars, draw_figures, draw_text, new_picture
from glue_jobs.texts.cost_text import DISCLAIMER
from glue_jobs.texts.report_text import ReportRow

RANGE = (Series("when calls are full", "blue"), Series("up to: one message in each call", "orange"))


def cost_picture(day: date, costs: Sequence[ReportRow]) -> str:
    """Return the SVG of a UTC day from its rows of `cost_daily`."""
    least, most = _sums(costs)
    found = f"Between {format_usd(least)} and {format_usd(most)}, at list prices."
    canvas = new_picture(f"Costs of {day}", "usage counted from the history; UTC, from midnight to midnight", found)
    draw_figures(
        canvas,
        [
            (format_usd(least), "at least"),
            (format_usd(most), "at most"),
            (format_usd(most * 30), "at most, in 30 such days"),
        ],
    )
    for heading, name in (("By capability, in USD", "capability"), ("By billed item, in USD", "item")):
        keys = sorted({row[name] for row in costs})
        rows = [_bar(key, [row for row in costs if row[name] == key]) for key in keys]
        draw_bars(canvas, heading, RANGE, rows=rows, format_value=format_usd)
    draw_text(canvas, "About these numbers", [f"{line}." for line in DISCLAIMER])
    return canvas.svg()


def format_usd(value: float) -> str:
    """Return an amount in USD with at least two significant digits."""
    if value == 0:
        return "0 USD"
    digits = max(2, 1 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f} USD"


def _bar(label: str, costs: Sequence[ReportRow]) -> Bar:
    least, most = _sums(costs)
    price_range = " to ".join(dict.fromkeys(format_usd(value).removesuffix(" USD") for value in (least, most)))
    return Bar(label, (least, most - least), price_range)


def _sums(costs: Sequence[ReportRow]) -> tuple[float, float]:
    return sum(row["usd_least"] for row in costs), sum(row["usd_most"] for row in costs)
