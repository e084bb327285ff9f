"""The picture of the topic report."""

from collections.abc import Sequence
from datetime import date

from glue_jobs.pictures import panels
from glue_jobs.texts.report_text import ReportRow, hour_of, section_rows
from glue_jobs.texts.topic_text import fan_out
from glue_jobs.transforms.topics import NUMBERS

COPIES = (panels.Series("publications", "blue"), panels.Series("copies", "orange"))


def topic_picture(day: date, summary: Sequence[ReportRow]) -> str:
    """Return the SVG of a UTC day from its `topic_summary`."""
    total = next(iter(section_rows(summary, "total")), dict.fromkeys(NUMBERS, 0))
    publications, copies = (panels.format_number(total[name]) for name in ("publications", "copies"))
    found = f"{publications} publications had {copies} copies."
    canvas = panels.new_picture(f"Topics on {day}", "UTC, from midnight to midnight; all exchanges", found)
    entries = [(publications, "publications"), (copies, "copies")]
    entries += [(f"{fan_out(total):.2f}", "copies a publication"), (panels.format_number(total["dropped"]), "dropped")]
    panels.draw_figures(canvas, [*entries, (panels.format_bytes(total["bytes_out"]), "delivered")])
    values = {hour_of(row): (row["publications"], row["copies"]) for row in section_rows(summary, "hour")}
    panels.draw_hours(canvas, "By the hour", COPIES, values=values)
    topics = [panels.Bar(_name(row), (row["publications"],)) for row in section_rows(summary, "topic")]
    panels.draw_bars(canvas, "Topics with most publications", COPIES[:1], rows=topics, labels=panels.LONG_LABELS)
    publishers = [panels.Bar(row["publisher"], (row["publications"],)) for row in section_rows(summary, "publisher")]
    panels.draw_bars(canvas, "Publishers with most publications", COPIES[:1], rows=publishers)
    unrouted = [panels.Bar(_name(row), (row["dropped"], row["alternate"])) for row in section_rows(summary, "unrouted")]
    lost = (panels.Series("dropped", "red"), panels.Series("to an alternate exchange", "grey"))
    panels.draw_bars(canvas, "Unrouted topics", lost, rows=unrouted, labels=panels.LONG_LABELS)
    return canvas.svg()


def _name(row: ReportRow) -> str:
    return f"{row['exchange']} {row['topic'] or 'the empty key'}"
