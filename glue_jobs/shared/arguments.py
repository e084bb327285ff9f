"""The command-line arguments of Glue jobs, and the time window that they select."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

WINDOW_ARGUMENTS = ("day", "days", "from", "to", "hours")
DAY = timedelta(days=1)


def parse_arguments(argv: Sequence[str], required: Sequence[str], *, optional: Sequence[str] = ()) -> dict[str, str]:
    """Parse Glue's command line, which also contains Glue's own arguments; absent optional arguments are omitted."""
    names = [*required, *(name for name in optional if any(word.split("=")[0] == f"--{name}" for word in argv))]
    try:
        from awsglue.utils import getResolvedOptions  # noqa: PLC0415 - installed only on Glue
    except ImportError:
        return _parsed(argv, names)
    given = getResolvedOptions(list(argv), names)
    return {name: given[name] for name in names}


def _parsed(argv: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    # Without abbreviations, as in Glue 6.0: --day must not match --days.
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in names:
        parser.add_argument(f"--{name}", required=True)
    known, _others = parser.parse_known_args(argv[1:])
    return vars(known)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time window in UTC: from `start`, inclusive, to `end`, exclusive."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Raise `ValueError` for an empty window."""
        if self.start >= self.end:
            raise ValueError(f"the window from {self.start} to {self.end} is empty; it must end after it starts")

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "TimeWindow":
        """Parse `--day` and `--days`, or two of `--from`, `--to` and `--hours`.

        `--day` is the last of `--days` whole days (default 1): a date, or a time such as EventBridge Scheduler's
        <aws.scheduler.scheduled-time>, which selects the day before. `--from` and `--to` are dates or times in
        ISO 8601, in UTC without a zone; with `--hours`, `--to` is truncated to the hour, so a scheduled time selects
        the whole hours before it. Raises `ValueError` with the missing or invalid arguments.
        """
        names = frozenset(WINDOW_ARGUMENTS) & given.keys()
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
        given_names = ", ".join(f"--{name}" for name in sorted(names)) or "missing"
        raise ValueError(
            f"the arguments of the window are {given_names}; give --day [--days], or two of --from, --to and --hours"
        )

    @property
    def days(self) -> tuple[date, ...]:
        """The UTC days that the window overlaps, in order."""
        last = (self.end - timedelta(microseconds=1)).date()
        return tuple(self.start.date() + DAY * ahead for ahead in range((last - self.start.date()).days + 1))

    @property
    def is_whole_days(self) -> bool:
        """True if the window starts and ends at midnight."""
        return self.start.time() == self.end.time() == time()

    def whole_days(self) -> "TimeWindow":
        """Return the window of all days that this one overlaps."""
        return _of_days(self.days[-1], len(self.days))

    def last_days(self, count: int) -> "TimeWindow":
        """Return the end of the window, of at most `count` days. Raises `ValueError` for less than one."""
        if count < 1:
            raise ValueError(f"a window has at least 1 day, not {count}")
        return TimeWindow(max(self.start, self.end - DAY * count), self.end)

    def widened(self, *, before: timedelta, after: timedelta) -> "TimeWindow":
        """Return the window that starts `before` earlier and ends `after` later."""
        return TimeWindow(self.start - before, self.end + after)


def _of_days(last: date, count: int) -> TimeWindow:
    end = datetime.combine(last, time(), UTC) + DAY
    return TimeWindow(end - DAY * count, end)


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
