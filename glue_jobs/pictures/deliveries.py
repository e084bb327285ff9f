"""The picture of how messages reached their queues."""

from collections.abc import Sequence
from datetime import date

from glue_jobs.pictures.panels import (
    LONG_LABELS,
    Bar,
    Series,
    draw_bars,
    draw_figures,
    draw_hours,
    draw_percentiles,
    format_bytes,
    format_number,
    new_picture,
)
from glue_jobs.texts.delivery_text import way
from glue_jobs.texts.report_text import Record, hour_of, of_section
from glue_jobs.transforms.deliveries import COUNTS

PERCENTILES = ("p50_ms", "p95_ms", "p99_ms")
BY_HOUR = (Series("delivered", "blue"), Series("tried again", "orange"), Series("dead", "red"))


def delivery_picture(day: date, summary: Sequence[Record]) -> str:
    """Return the picture of one UTC day from its `delivery_summary`."""
    capabilities = of_section(summary, "capability")
    total = {name: sum(row[name] for row in capabilities) for name in COUNTS}
    found = f"{format_number(total['delivered'])} were delivered, {format_number(total['dead'])} are dead letters."
    canvas = new_picture(f"Deliveries on {day}", "UTC, from midnight to midnight; all capabilities", found)
    entries = [(format_number(total["delivered"]), "delivered"), (format_number(total["again"]), "at a later try")]
    entries += [(format_number(total["retried"]), "put off"), (format_number(total["dead"]), "dead letters")]
    draw_figures(canvas, [*entries, (format_bytes(total["bytes"]), "delivered")])
    values = {hour_of(row): (row["delivered"], row["retried"], row["dead"]) for row in of_section(summary, "hour")}
    draw_hours(canvas, "By the hour", BY_HOUR, values=values)
    draw_percentiles(
        canvas,
        "Time until it was there, by capability",
        rows=[(row["capability"], _times(row)) for row in timed(capabilities)],
    )
    ways = of_section(summary, "way")
    draw_percentiles(canvas, "On the busiest ways", rows=[(way(row), _times(row)) for row in timed(ways)])
    reasons = [Bar(row["reason"] or "no reason", (row["dead"],)) for row in of_section(summary, "reason")]
    draw_bars(canvas, "Dead letters by reason", [Series("dead", "red")], rows=reasons, labels=LONG_LABELS)
    return canvas.svg()


def timed(rows: Sequence[Record]) -> list[Record]:
    """Return the rows that have times."""
    return [row for row in rows if row["p50_ms"] is not None]


def _times(row: Record) -> tuple[float, ...]:
    return tuple(row[name] for name in PERCENTILES)
