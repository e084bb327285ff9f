"""Sarracenia's timestamps, in UTC: `20231114T221320.25` in v03, without the `T` in v02."""

from datetime import UTC, datetime

DIGITS = 14  # YYYYMMDDHHMMSS
DATE_DIGITS = 8
MICROSECONDS = 1_000_000


def v03_time(moment: datetime) -> str:
    """Return a time in the form of v03."""
    text = v02_time(moment)
    return f"{text[:DATE_DIGITS]}T{text[DATE_DIGITS:]}"


def v02_time(moment: datetime) -> str:
    """Return a time in the form of v02."""
    utc = moment.astimezone(UTC)
    # strftime writes the year 800 with three digits on some systems.
    whole = f"{utc.year:04}{utc.month:02}{utc.day:02}{utc.hour:02}{utc.minute:02}{utc.second:02}"
    return f"{whole}.{utc.microsecond:06}".rstrip("0").rstrip(".") if utc.microsecond else whole


def parse_time(text: str) -> datetime:
    """Parse a time in either form. Raises `ValueError`."""
    digits = text[:DATE_DIGITS] + text[DATE_DIGITS:].removeprefix("T")
    whole, fraction = digits[:DIGITS], digits[DIGITS:]
    if not (len(whole) == DIGITS and whole.isascii() and whole.isdecimal() and fraction[:1] in ("", ".")):
        raise ValueError(f"{text[:80]!r} is not a time such as 20231114T221320.25")
    seconds = float("0" + fraction)  # sr3 writes fractions below 0.0001 with an exponent, and parses them as floats too
    if seconds >= 1:
        raise ValueError(f"{text[:80]!r} has a fraction of {seconds:g} seconds")
    month, day, hour, minute, second = (int(whole[at : at + 2]) for at in range(4, DIGITS, 2))
    microsecond = min(round(seconds * MICROSECONDS), MICROSECONDS - 1)
    return datetime(int(whole[:4]), month, day, hour, minute, second, microsecond, tzinfo=UTC)
