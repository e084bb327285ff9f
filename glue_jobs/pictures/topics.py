"""The picture of the topic report."""

from collections.abc import Sequence
from datetime import date

from glue_jobs.pictures.panels import (
    LONG_LABELS,
    Bar,
    Series,
    draw_bars,
    draw_figures,
    draw_hours,
    format_bytes,
    format_number,
    new_picture,
)
from glue_jobs.texts.report_text import ReportRow, hour_of, section_rows
from glue_jobs.texts.topic_text import fan_out
from glue_jobs.transforms.topics import NUMBERS

COPIES = (Series("publications", "blue"), Series("copies", "orange"))


def topic_picture(day: date, summary: Sequence[ReportRow]) -> str:
    """Return the SVG of a UTC day from its `topic_summary`."""
    total = next(iter(section_rows(summary, "total")), dict.fromkeys(NUMBERS, 0))
    found = f"{format_number(total['publications'])} publications had {format_number(total['copies'])} copies."
    canvas = new_picture(f"Topics on {day}", "UTC, from midnight to midnight; all exchanges", found)
    entries = [(format_number(total["publications"]), "publications"), (format_number(total["copies"]), "copies")]
    entries += [(f"{fan_out(total):.2f}", "copies a publication"), (format_number(total["dropped"]), "dropped")]
    draw_figures(canvas, [*entries, (format_bytes(total["bytes_out"]), "delivered")])
    values = {hour_of(row): (row["publications"], row["copies"]) for row in section_rows(summary, "hour")}
    draw_hours(canvas, "By the hour", COPIES, values=values)
    publications = [COPIES[0]]
    topics = [Bar(_name(row), (row["publications"],)) for row in section_rows(summary, "topic")]
    draw_bars(canvas, "Topics with most publications", publications, rows=topics, labels=LONG_LABELS)
    publishers = [Bar(row["publisher"], (row["publications"],)) for row in section_rows(summary, "publisher")]
    draw_bars(canvas, "Publishers with most publications", publications, rows=publishers)
    unrouted = [Bar(_name(row), (row["dropped"], row["alternate"])) for row in section_rows(summary, "unrouted")]
    lost = (Series("dropped", "red"), Series("to an alternate exchange", "grey"))
    draw_bars(canvas, "Unrouted topics", lost, rows=unrouted, labels=LONG_LABELS)
    return canvas.svg()


def _name(row: ReportRow) -> str:
    return f"{row['exchange']} {row['topic'] or 'the empty key'}"
