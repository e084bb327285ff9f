"""Limits of a subscriber: maximum ages, duplicate detection and attempts."""

from dataclasses import dataclass
from datetime import timedelta

from signalbox.sarracenia.subscription.duplicates import Basis

DEFAULT_ATTEMPTS = 3  # sr3 3.3.1, attempts
PAUSE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum ages, duplicate detection and attempts; None means no limit."""

    message_age: timedelta | None = None
    file_age: timedelta | None = None
    duplicates_ttl: timedelta | None = None
    basis: Basis = Basis.PATH
    attempts: int = DEFAULT_ATTEMPTS
    pause: timedelta = PAUSE
