"""Moments as Sarracenia writes them, in UTC: `20231114T221320.25`, without the letter in v02."""

from datetime import UTC, datetime

DIGITS = 14  # YYYYMMDDHHMMSS
DATE_DIGITS = 8
MICROSECONDS = 1_000_000


def v03_time(moment: datetime) -> str:
    """Return a moment as v03 writes it."""
    text = v02_time(moment)
    return f"{text[:DATE_DIGITS]}T{text[DATE_DIGITS:]}"


def v02_time(moment: datetime) -> str:
    """Return a moment as v02 writes it."""
    utc = moment.astimezone(UTC)
    # Not strftime, which writes the year 800 as three digits on some systems.
    whole = f"{utc.year:04}{utc.month:02}{utc.day:02}{utc.hour:02}{utc.minute:02}{utc.second:02}"
    return f"{whole}.{utc.microsecond:06}".rstrip("0").rstrip(".") if utc.microsecond else whole


def parse_time(text: str) -> datetime:
    """Return the moment in a text of either format. Raises `ValueError`."""
    digits = text[:DATE_DIGITS] + text[DATE_DIGITS:].removeprefix("T")
    whole, fraction = digits[:DIGITS], digits[DIGITS:]
    if not (len(whole) == DIGITS and whole.isascii() and whole.isdecimal() and fraction[:1] in ("", ".")):
        raise ValueError(f"{text[:80]!r} is no time such as 20231114T221320.25")
    seconds = float("0" + fraction)  # sr3 writes one below 0.0001 with an exponent, and reads it this way too
    if seconds >= 1:
        raise ValueError(f"{text[:80]!r} has a fraction of {seconds:g} seconds")
    month, day, hour, minute, second = (int(whole[at : at + 2]) for at in range(4, DIGITS, 2))
    microsecond = min(round(seconds * MICROSECONDS), MICROSECONDS - 1)
    return datetime(int(whole[:4]), month, day, hour, minute, second, microsecond, tzinfo=UTC)
