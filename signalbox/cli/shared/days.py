"""Days as options of commands."""

from datetime import UTC, date, datetime, timedelta

from signalbox.errors import RejectedError

WORDS = {"today": timedelta(), "yesterday": timedelta(days=1)}
METAVAR = "DAY"


def today() -> date:
    """Return the current UTC day."""
    return datetime.now(UTC).date()


def past_day(text: str | None, option: str) -> date | None:
    """Return the UTC day that an option names: `YYYY-MM-DD`, `today` or `yesterday`; None stays None.

    Raises `RejectedError`, also for a day that has not begun.
    """
    if text is None:
        return None
    if text in WORDS:
        return today() - WORDS[text]
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError as error:
        example = today().isoformat()
        raise RejectedError(
            f"{option}: expected a day such as {example}, `today` or `yesterday`, not {text!r}"
        ) from error
    if day > today():
        raise RejectedError(f"{option}: {day} has not begun; in UTC it is {datetime.now(UTC):%Y-%m-%d %H:%M}")
    return day
