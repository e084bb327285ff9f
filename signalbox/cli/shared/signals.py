"""Signals that end a command in an orderly way."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STATUS_OF_SIGNALS = 128  # what shells add to a signal's number


class Interrupted(BaseException):
    """Raised where a signal came, so that whatever is held is let go; no error of ours, hence no `Exception`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = STATUS_OF_SIGNALS + number


@contextmanager
def handling(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have a function called for each signal that would end us otherwise."""
    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` for each signal that would end us otherwise."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    with handling(interrupt):
        yield


class Ending:
    """Whether a signal asked us to end: work is finished first, waiting is not."""

    def __init__(self) -> None:
        self.is_due = False
        self._waits = False

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Take note of signals meanwhile."""
        with handling(self._note):
            yield

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Break off what is done meanwhile when a signal comes."""
        self._waits = True
        try:
            yield
        except Interrupted:
            pass
        finally:
            self._waits = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.is_due = True
        if self._waits:
            raise Interrupted(number)
