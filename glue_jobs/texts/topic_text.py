"""The report of topics as text, for people."""

from collections.abc import Iterator, Sequence
from datetime import date

from glue_jobs.texts.report_text import NOBODY, Record, block, hour_of, listed, of_section, told
from glue_jobs.transforms.topics import NUMBERS

SECONDS = 86_400
LISTS = {
    "exchange": ("exchanges", ("exchange",), NUMBERS),
    "topic": ("topics by publications", ("exchange", "topic"), ("publications", "copies", "bytes_in", "bytes_out")),
    "publisher": ("publishers by publications", ("publisher",), ("publications", "bytes_in")),
    "unrouted": ("topics that nobody wanted", ("exchange", "topic"), ("dropped", "alternate")),
}


def topic_text(day: date, summary: Sequence[Record]) -> str:
    """Return the report of one UTC day from its `topic_summary`."""
    return block("topic-report", day, _lines(summary))


def _lines(summary: Sequence[Record]) -> Iterator[str]:
    totals = of_section(summary, "total")
    if not totals:
        yield "nothing was published"
        return
    total = totals[0]
    yield told(total, NUMBERS)
    yield f"fan-out {fan_out(total):.2f} copies of a publication"
    yield f"rate {total['publications'] / SECONDS:.3f} publications a second; {_busiest(summary)}"
    for section, (title, names, numbers) in LISTS.items():
        rows = of_section(summary, section)
        lines = [f"{_name(row, names)} {told(row, numbers)}" for row in rows]
        yield from listed(title, lines, of=rows[0]["of"] if rows else 0)


def fan_out(row: Record) -> float:
    """Return how many copies a publication had in the mean."""
    return int(row["copies"]) / max(int(row["publications"]), 1)


def _busiest(summary: Sequence[Record]) -> str:
    hour = max(of_section(summary, "hour"), key=lambda row: int(row["publications"]))
    return f"{hour['publications'] / 3600:.3f} in the busiest hour, {hour_of(hour):02}:00"


def _name(row: Record, names: Sequence[str]) -> str:
    # The empty routing key is a name too.
    return " ".join(NOBODY if row[name] is None else row[name] or '""' for name in names)
