"""Progress of long steps on standard error: a moving line on a terminal, a plain line for each step elsewhere."""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from signalbox.local.processes import piped

if TYPE_CHECKING:
    from rich.status import Status

TAIL_LINES = 40
Say = Callable[[str], None]


class _PlainLines:
    """Steps on a plain stream: a line at the start of each, which its end completes unless another step began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: object = None
        """The step whose line is not complete."""

    def begin(self, step: object, name: str) -> None:
        """Write the beginning of a step's line."""
        with self._lock:
            self._write(f"{self._line_break()}  {name} ...")
            self._open = step

    def show(self, step: object, detail: str) -> None:
        """Write nothing: a detail is for terminals."""

    def end(self, step: object, name: str, duration: str | None) -> None:
        """Write the duration of a step, or nothing if it failed, on its own line."""
        with self._lock:
            if self._open is step:
                self._write(f" {duration}\n" if duration else "\n")
            elif duration:
                self._write(f"{self._line_break()}  {name} ... {duration}\n")
            self._open = None

    def _line_break(self) -> str:
        return "" if self._open is None else "\n"

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class _MovingLine:
    """Steps on a terminal: one moving line names those that run, and each leaves a line when it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[object, str] = {}
        self._status: Status | None = None

    def begin(self, step: object, name: str) -> None:
        """Add a step to the moving line."""
        from rich.console import Console  # noqa: PLC0415 - slow to import, and needed on a terminal only

        with self._lock:
            self._names[step] = name
            if self._status is None:
                self._status = Console(stderr=True).status(self._text())
                self._status.start()
            self._status.update(self._text())

    def show(self, step: object, detail: str) -> None:
        """Show a detail after the names."""
        with self._lock:
            if self._status is not None and step in self._names:
                self._status.update(self._text(detail))

    def end(self, step: object, name: str, duration: str | None) -> None:
        """Remove a step from the moving line, and leave its duration unless it failed."""
        with self._lock:
            del self._names[step]
            status = self._status
            if status is None:
                return
            if self._names:
                status.update(self._text())
            else:
                status.stop()
                self._status = None
            if duration:
                status.console.print(f"  {name} ... {duration}", markup=False, highlight=False)

    def _text(self, detail: str = "") -> str:
        names = " · ".join(self._names.values())
        width = 80 if self._status is None else self._status.console.width
        # rich does not erase the first line of a status that wraps.
        shown, room = f"{names[: width - 10]} ...", max(0, width - len(names) - 10)
        return f"{_escaped(shown)} [dim]{_escaped(detail[:room])}[/dim]" if detail else _escaped(shown)


_PLAIN_LINES, _MOVING_LINE = _PlainLines(), _MovingLine()


@contextmanager
def step(name: str) -> Iterator[Say]:
    """Show a step while it runs, then its duration. Yields a function that shows a detail, on a terminal only.

    Threads may run steps side by side.
    """
    started, this, duration = time.monotonic(), object(), None
    shown = _MOVING_LINE if sys.stderr.isatty() else _PLAIN_LINES
    shown.begin(this, name)
    try:
        yield lambda detail: shown.show(this, detail)
        duration = f"{time.monotonic() - started:.1f} s"
    finally:
        shown.end(this, name, duration)


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


def output_of(command: list[str], *, folder: Path, environment: Mapping[str, str], say: Say) -> tuple[int, list[str]]:
    """Run a command, passing each line of its output to `say`; return its exit status and its last 40 lines."""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    with piped(command, folder=folder, environment=environment) as process:
        for line in process.stdout or ():
            if text := line.strip():
                tail.append(line.rstrip())
                say(text)
    return process.returncode, list(tail)
