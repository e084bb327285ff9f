"""The pace of a bridge, below its realm's limit of a publisher, whose further messages would be dead letters."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from signalbox.exchange.routing.limits import PERIOD_SECONDS
from signalbox.live.router.write_limits import MAXIMUM_KILOBYTES

# A period has room for this rate, for what a second without messages leaves, and for one large retained event.
RATE = 0.8 * MAXIMUM_KILOBYTES / PERIOD_SECONDS  # KB a second


@dataclass(slots=True)
class PublicationPace:
    """The KB that may be published now. Logs of containers leave half of them, so that no row waits for a log."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    _exclusive: Lock = field(default_factory=Lock)
    _room: float = RATE
    _at: float | None = None

    def wait(self, kilobytes: int, *, is_log: bool) -> None:
        """Wait until a message may be published."""
        while (seconds := self._missing(kilobytes, RATE / 2 if is_log else 0)) > 0:
            self.sleep(seconds)

    def _missing(self, kilobytes: int, least: float) -> float:
        """Take KB and return 0, or return the seconds until the room is a KB more than the least."""
        with self._exclusive:
            now = self.monotonic()
            self._room = min(self._room + RATE * (now - (now if self._at is None else self._at)), RATE)
            self._at = now
            if self._room < least:
                return (1 + least - self._room) / RATE
            self._room -= kilobytes
            return 0.0
