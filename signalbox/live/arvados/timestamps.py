"""Times of log rows and filters, in nanoseconds: Arvados compares them as RFC 3339 with any number of digits."""

import re
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DIGITS, NANOSECONDS = 9, 1_000_000_000  # of a second; Go ignores further digits
# As Go's time.Parse(time.RFC3339Nano, …) accepts them: upper-case letters only, and a comma as decimal separator, too.
RFC_3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def nanoseconds(text: str) -> int | None:
    """Return the nanoseconds from 1970 to an RFC 3339 time, or None for any other text."""
    found = RFC_3339.fullmatch(text)
    if found is None:
        return None
    second, fraction, zone = found.groups(default="")
    try:
        moment = datetime.fromisoformat(second + zone)
    except ValueError:
        return None
    return (moment - EPOCH) // timedelta(seconds=1) * NANOSECONDS + int(fraction[:DIGITS].ljust(DIGITS, "0"))


def nanoseconds_of(moment: datetime) -> int:
    """Return the nanoseconds from 1970 to a moment."""
    return (moment - EPOCH) // timedelta(microseconds=1) * 1_000
