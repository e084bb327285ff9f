"""A thread of the bridge, which works while the bridge holds its lock."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from signalbox.errors import UnavailableError

PAUSE_SECONDS = 1.0


@dataclass(slots=True)
class Worker:
    """Repeats its work after `UnavailableError`; another error is raised by `check`.

    `work` returns when `is_ending`; `figures` returns its statistics.
    """

    name: str
    work: "Callable[[Worker], None]"
    figures: Callable[[], Mapping[str, int]]
    say: Callable[[str], None]
    pause_seconds: float = PAUSE_SECONDS
    _problem: Exception | None = None
    _end: threading.Event = field(default_factory=threading.Event)
    _change: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Work until the end of the context."""
        self._end.clear()
        thread = threading.Thread(target=self._run, name=self.name)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            self._change.set()
            thread.join()

    @property
    def is_ending(self) -> bool:
        """Return whether the work is to end."""
        return self._end.is_set()

    def check(self) -> None:
        """Raise the error that has ended the work, if there is one."""
        if self._problem is not None:
            raise self._problem

    def wake(self) -> None:
        """End the wait for a change."""
        self._change.set()

    def wait(self, seconds: float) -> None:
        """Wait for the end."""
        self._end.wait(seconds)

    def wait_for_change(self, seconds: float) -> None:
        """Wait until `wake` is called, at most a number of seconds."""
        self._change.wait(seconds)
        self._change.clear()

    def _run(self) -> None:
        while not self.is_ending:
            try:
                self.work(self)
            except UnavailableError as error:
                self.say(f"{self.name}: {error}; trying again")
                self.wait(self.pause_seconds)
            except Exception as error:  # noqa: BLE001 - `check` raises it: a thread must not end unnoticed
                self._problem = error
                return
