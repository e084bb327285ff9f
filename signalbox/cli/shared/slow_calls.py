"""The line on a terminal that a command waits for a call, if it has printed nothing and the call takes long."""

import sys
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.hooks import BaseEventHooks

PATIENCE = 0.4  # seconds of a call until the line, for a first output within a second of the start


class SlowCalls:
    """Prints one line while the first call that takes long has no response; nothing after any other line."""

    def __init__(self) -> None:
        self._is_due = True
        self._timer: Timer | None = None
        self._lock = Lock()

    def end(self) -> None:
        """Print nothing from now on: the command has printed a line."""
        with self._lock:
            self._is_due = False

    def announce(self, events: "BaseEventHooks", place: str) -> None:
        """Print the line for calls of the session that sends these events, if standard error is a terminal."""
        if not (self._is_due and sys.stderr.isatty()):
            return

        def begin(**_: Any) -> None:  # noqa: ANN401 - botocore's arguments
            self._wait(place)

        def finish(**_: Any) -> None:  # noqa: ANN401 - botocore's arguments
            self._stop()

        events.register("before-send", begin)
        events.register("response-received", finish)

    def _wait(self, place: str) -> None:
        with self._lock:
            if self._is_due and self._timer is None:
                self._timer = Timer(PATIENCE, self._print, [place])
                self._timer.daemon = True  # the command may end first
                self._timer.start()

    def _stop(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None

    def _print(self, place: str) -> None:
        with self._lock:
            is_due, self._is_due = self._is_due and self._timer is not None, False
        if is_due:
            sys.stderr.write(f"· waiting for {place}\n")
            sys.stderr.flush()


SLOW_CALLS = SlowCalls()
