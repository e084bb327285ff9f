"""What a subscriber takes as too old and as the same, and how often it tries."""

from dataclasses import dataclass
from datetime import timedelta

from signalbox.sarracenia.subscription.duplicates import Basis

DEFAULT_ATTEMPTS = 3  # sr3 3.3.1, attempts
PAUSE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is too old, what is the same, and how often something is tried; None for no limit."""

    message_age: timedelta | None = None
    file_age: timedelta | None = None
    duplicates_ttl: timedelta | None = None
    basis: Basis = Basis.PATH
    attempts: int = DEFAULT_ATTEMPTS
    pause: timedelta = PAUSE
