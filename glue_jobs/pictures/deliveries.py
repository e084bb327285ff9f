"""The picture of the delivery report."""

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
from glue_jobs.texts.delivery_text import path_label
from glue_jobs.texts.report_text import ReportRow, hour_of, section_rows
from glue_jobs.transforms.deliveries import COUNTS

PERCENTILES = ("p50_ms", "p95_ms", "p99_ms")
BY_HOUR = (Series("delivered", "blue"), Series("retried", "orange"), Series("dead", "red"))


def delivery_picture(day: date, summary: Sequence[ReportRow]) -> str:
    """Return the SVG of a UTC day from its `delivery_summary`."""
    capabilities = section_rows(summary, "capability")
    total = {name: sum(row[name] for row in capabilities) for name in COUNTS}
    found = f"{format_number(total['delivered'])} were delivered, {format_number(total['dead'])} are dead letters."
    canvas = new_picture(f"Deliveries on {day}", "UTC, from midnight to midnight; all capabilities", found)
    entries = [(format_number(total["delivered"]), "delivered"), (format_number(total["again"]), "after a retry")]
    entries += [(format_number(total["retried"]), "deferred"), (format_number(total["dead"]), "dead letters")]
    draw_figures(canvas, [*entries, (format_bytes(total["bytes"]), "delivered")])
    values = {hour_of(row): (row["delivered"], row["retried"], row["dead"]) for row in section_rows(summary, "hour")}
    draw_hours(canvas, "By the hour", BY_HOUR, values=values)
    draw_percentiles(
        canvas,
        "Delivery time, by capability",
        rows=[(row["capability"], _times(row)) for row in rows_with_times(capabilities)],
    )
    paths = section_rows(summary, "way")
    draw_percentiles(
        canvas,
        "Delivery time, by busiest path",
        rows=[(path_label(row), _times(row)) for row in rows_with_times(paths)],
    )
    reasons = [Bar(row["reason"] or "no reason", (row["dead"],)) for row in section_rows(summary, "reason")]
    draw_bars(canvas, "Dead letters by reason", [Series("dead", "red")], rows=reasons, labels=LONG_LABELS)
    return canvas.svg()


def rows_with_times(rows: Sequence[ReportRow]) -> list[ReportRow]:
    """Return the rows with delivery times."""
    return [row for row in rows if row["p50_ms"] is not None]


def _times(row: ReportRow) -> tuple[float, ...]:
    return tuple(row[name] for name in PERCENTILES)
