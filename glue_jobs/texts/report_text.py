"""Texts of reports, for people: what they have in common."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

# A row as Spark hands it over, with times as text in UTC: YYYY-MM-DD HH:MM:SS.mmm.
Record = Mapping[str, Any]
NOBODY = "-"


def block(name: str, day: date, lines: Iterable[str]) -> str:
    """Return the text of one UTC day: what it is of, and its lines."""
    end = day + timedelta(days=1)
    head = f"{name}-end {end.isoformat()} 00:00:00 (86400 s)"
    return "".join(f"{line}\n" for line in (head, *lines))


def of_section(rows: Iterable[Record], section: str) -> list[Record]:
    """Return the rows of a section of a summary, in their order."""
    return sorted((row for row in rows if row["section"] == section), key=lambda row: int(row["rank"]))


def hour_of(row: Record) -> int:
    """Return the hour of the day that a row is of."""
    return int(row["hour"][11:13])


def told(row: Record, names: Sequence[str]) -> str:
    """Return the numbers of a row that are not null, each with its name."""
    return " ".join(f"{name}={row[name]}" for name in names if row[name] is not None)


def listed(title: str, lines: Sequence[str], *, of: int) -> list[str]:
    """Return a list with its title, which says when there are more; nothing for an empty one."""
    if not lines:
        return []
    count = f"{len(lines)}" if of == len(lines) else f"{len(lines)} of {of}"
    return ["", f"{title} ({count})", *(f"  {line}" for line in lines)]
