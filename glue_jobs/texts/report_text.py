"""The common parts of report texts: head line, sections, named numbers and lists."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

# A collected row, with times as text in UTC: YYYY-MM-DD HH:MM:SS.mmm.
ReportRow = Mapping[str, Any]
ABSENT = "-"


def report_block(name: str, day: date, lines: Iterable[str]) -> str:
    """Return the text of a UTC day: a head line with the report's name, then `lines`.

    Names in a line are those that others chose: what is not printable, such as a line feed, becomes an escape.
    """
    end = day + timedelta(days=1)
    head = f"{name}-end {end.isoformat()} 00:00:00 (86400 s)"
    return "".join(f"{_printable(line)}\n" for line in (head, *lines))


def _printable(line: str) -> str:
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)


def section_rows(rows: Iterable[ReportRow], section: str) -> list[ReportRow]:
    """Return the rows of a section of a summary, sorted by rank."""
    return sorted((row for row in rows if row["section"] == section), key=lambda row: int(row["rank"]))


def hour_of(row: ReportRow) -> int:
    """Return the hour of a row, from 0 to 23."""
    return int(row["hour"][11:13])


def named_numbers(row: ReportRow, names: Sequence[str]) -> str:
    """Return the numbers of a row as `name=value`, without nulls."""
    return " ".join(f"{name}={row[name]}" for name in names if row[name] is not None)


def titled_list(title: str, lines: Sequence[str], *, of: int) -> list[str]:
    """Return the lines of a list below its title, which has the number of lines and, if larger, `of`.

    An empty list has no title.
    """
    if not lines:
        return []
    count = f"{len(lines)}" if of == len(lines) else f"{len(lines)} of {of}"
    return ["", f"{title} ({count})", *(f"  {line}" for line in lines)]
