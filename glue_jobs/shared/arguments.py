"""What every job is told on its command line: where things are, and which span of time to work on."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

WINDOW = ("day", "days", "from", "to", "hours")
DAY = timedelta(days=1)


def resolved(argv: Sequence[str], required: Sequence[str], *, optional: Sequence[str] = ()) -> dict[str, str]:
    """Read Glue's command line, in which Glue's own arguments stand too; optional ones that are absent are left out."""
    names = [*required, *(name for name in optional if any(word.split("=")[0] == f"--{name}" for word in argv))]
    try:
        from awsglue.utils import getResolvedOptions  # noqa: PLC0415 - only Glue has it
    except ImportError:
        return _parsed(argv, names)
    given = getResolvedOptions(list(argv), names)
    return {name: given[name] for name in names}


def _parsed(argv: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    # Without abbreviations, as Glue 6.0 reads them: --day must not be taken for the start of --days.
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in names:
        parser.add_argument(f"--{name}", required=True)
    known, _others = parser.parse_known_args(argv[1:])
    return vars(known)


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time in UTC: from `start` on, and before `end`."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuse a span that holds nothing."""
        if self.start >= self.end:
            raise ValueError(f"the window from {self.start} to {self.end} is empty; it must end after it starts")

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "Window":
        """Read `--day` and `--days`, or two of `--from`, `--to` and `--hours`.

        `--day` is the last of `--days` whole days (1 without it): a date, or a moment, as EventBridge Scheduler puts it
        for <aws.scheduler.scheduled-time>, which means the day before that moment's. `--from` and `--to` are dates or
        moments in ISO 8601, UTC unless they have a zone; with `--hours`, `--to` is cut to the hour, so a scheduled
        time means the whole hours before it. Raises `ValueError`, which names what is missing or wrong.
        """
        names = frozenset(WINDOW) & given.keys()
        if "day" in names and names <= {"day", "days"}:
            return _of_days(_last_day(given["day"]), _count(given, "days"))
        if names == {"from", "to"}:
            return cls(_moment(given["from"]), _moment(given["to"]))
        if names == {"to", "hours"}:
            end = _moment(given["to"]).replace(minute=0, second=0, microsecond=0)
            return cls(end - timedelta(hours=_count(given, "hours")), end)
        if names == {"from", "hours"}:
            start = _moment(given["from"])
            return cls(start, start + timedelta(hours=_count(given, "hours")))
        told = ", ".join(f"--{name}" for name in sorted(names)) or "nothing"
        raise ValueError(f"the window is told by {told}; give --day [--days], or two of --from, --to and --hours")

    @property
    def days(self) -> tuple[date, ...]:
        """The UTC days that the window touches, in order."""
        last = (self.end - timedelta(microseconds=1)).date()
        return tuple(self.start.date() + DAY * ahead for ahead in range((last - self.start.date()).days + 1))

    @property
    def is_whole_days(self) -> bool:
        """Whether it starts and ends at midnight."""
        return self.start.time() == self.end.time() == time()

    def whole_days(self) -> "Window":
        """Return the window of all days that this one touches."""
        return _of_days(self.days[-1], len(self.days))

    def widened(self, *, before: timedelta, after: timedelta) -> "Window":
        """Return the window that starts earlier and ends later."""
        return Window(self.start - before, self.end + after)


def _of_days(last: date, count: int) -> Window:
    end = datetime.combine(last, time(), UTC) + DAY
    return Window(end - DAY * count, end)


def _last_day(text: str) -> date:
    if len(text) == len("YYYY-MM-DD"):
        return date.fromisoformat(text)
    return _moment(text).date() - DAY


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _count(given: Mapping[str, str], name: str) -> int:
    count = int(given.get(name, "1"))
    if count < 1:
        raise ValueError(f"--{name} is {count}; it must be at least 1")
    return count
