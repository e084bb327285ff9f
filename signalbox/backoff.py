"""Exponential back-off with full jitter: how often, and after which pauses, a call is repeated.

https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signalbox.clock import Clock

# Pauses of at most 0.1, 0.2, 0.4, 0.8, 1.6, 2 and 2 seconds: 3.6 seconds on average before a call is given up.
FIRST_SECONDS, LONGEST_SECONDS, ATTEMPTS = 0.1, 2.0, 8


def longest_pause(repetition: int) -> float:
    """Return the longest pause before a repetition, in seconds; the first repetition is 1."""
    # A client that tries without limit repeats more often than a float has powers of two.
    return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(repetition - 1, ATTEMPTS))


@dataclass(frozen=True, slots=True)
class Backoff:
    """The attempts of a call that a service may refuse for now.

    `draw` returns random numbers from 0 to 1, `deadline` the moment after which nothing is repeated, or None; `most` is
    the largest number of attempts.
    """

    clock: "Clock"
    draw: Callable[[], float]
    deadline: Callable[[], datetime | None] = lambda: None
    most: int = ATTEMPTS

    def attempts(self) -> Iterator[int]:
        """Yield the number of each attempt, from 0, and sleep before all but the first.

        End after the last attempt, or when the next pause would go beyond the deadline.
        """
        yield 0
        repetition = 1
        while (pause := self.pause(repetition)) is not None:
            self.clock.sleep(pause)
            yield repetition
            repetition += 1

    def pause(self, repetition: int) -> float | None:
        """Return the pause before a repetition, in seconds; None when there is none. The first repetition is 1."""
        if repetition >= self.most:
            return None
        pause, deadline = self.draw() * longest_pause(repetition), self.deadline()
        is_too_late = deadline is not None and self.clock.now() + timedelta(seconds=pause) > deadline
        return None if is_too_late else pause
