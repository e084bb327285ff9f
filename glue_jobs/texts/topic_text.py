"""The text of the topic report."""

from collections.abc import Iterator, Sequence
from datetime import date

from glue_jobs.texts.report_text import (
    ABSENT,
    ReportRow,
    hour_of,
    named_numbers,
    report_block,
    section_rows,
    titled_list,
)
from glue_jobs.transforms.topics import NUMBERS

SECONDS = 86_400
LISTS = {
    "exchange": ("exchanges", ("exchange",), NUMBERS),
    "topic": ("topics by publications", ("exchange", "topic"), ("publications", "copies", "bytes_in", "bytes_out")),
    "publisher": ("publishers by publications", ("publisher",), ("publications", "bytes_in")),
    "unrouted": ("unrouted topics", ("exchange", "topic"), ("dropped", "alternate")),
}


def topic_text(day: date, summary: Sequence[ReportRow]) -> str:
    """Return the report of a UTC day from its `topic_summary`."""
    return report_block("topic-report", day, _lines(summary))


def _lines(summary: Sequence[ReportRow]) -> Iterator[str]:
    totals = section_rows(summary, "total")
    if not totals:
        yield "no publications"
        return
    total = totals[0]
    yield named_numbers(total, NUMBERS)
    yield f"fan-out {fan_out(total):.2f} copies of a publication"
    yield f"rate {total['publications'] / SECONDS:.3f} publications a second; {_busiest(summary)}"
    for section, (title, names, numbers) in LISTS.items():
        rows = section_rows(summary, section)
        lines = [f"{_name(row, names)} {named_numbers(row, numbers)}" for row in rows]
        yield from titled_list(title, lines, of=rows[0]["of"] if rows else 0)


def fan_out(row: ReportRow) -> float:
    """Return the mean number of copies of a publication."""
    return int(row["copies"]) / max(int(row["publications"]), 1)


def _busiest(summary: Sequence[ReportRow]) -> str:
    hour = max(section_rows(summary, "hour"), key=lambda row: int(row["publications"]))
    return f"{hour['publications'] / 3600:.3f} in the busiest hour, {hour_of(hour):02}:00"


def _name(row: ReportRow, names: Sequence[str]) -> str:
    # The empty routing key is a valid name.
    return " ".join(ABSENT if row[name] is None else row[name] or '""' for name in names)
