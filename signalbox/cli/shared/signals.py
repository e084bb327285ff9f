"""Signals that end a command after its cleanup."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STATUS_OF_SIGNALS = 128  # what shells add to a signal's number


class Interrupted(BaseException):
    """Raised when a signal arrives, so that context managers clean up; not an error, hence no `Exception`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = STATUS_OF_SIGNALS + number


@contextmanager
def handling(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call a function for each signal that ends a process by default."""
    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` for each signal that ends a process by default."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    with handling(interrupt):
        yield


class Ending:
    """A request to end by signal: work in progress is finished, waiting is interrupted.

    A second signal interrupts work, too: it may wait for a stage that does not respond.
    """

    def __init__(self) -> None:
        self.is_due = False
        self._waits = False
        self._number: int | None = None

    def exit_if_interrupted(self) -> None:
        """End the command with 130 after Ctrl-C.

        After SIGTERM and SIGHUP it ends as usual: a supervisor has requested the end, and counts it as success.
        """
        if self._number == signal.SIGINT:
            raise typer.Exit(STATUS_OF_SIGNALS + self._number)

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Record signals while the context is active."""
        with handling(self._note):
            yield

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Interrupt the body of the context when a signal arrives."""
        self._waits = True
        try:
            yield
        except Interrupted:
            pass
        finally:
            self._waits = False

    def _note(self, number: int, _frame: FrameType | None) -> None:
        is_repeated, self.is_due, self._number = self.is_due, True, number
        if self._waits or is_repeated:
            raise Interrupted(number)
