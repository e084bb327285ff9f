"""Patch: an invocation ends with its handler, not 50 ms later.

MiniStack waits up to 50 ms for a line of the log after each response of a handler, and looks for it every millisecond:
an instance that logs nothing is kept that long, with its caller. A handler's lines are in the pipe before its response,
so here they are read as far as the pipe has any, without waiting.
"""

import os
import select
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any, Protocol

from signalbox.local.emulator.patches.patch import Patch

MINISTACK = "1.5.33"
WORKER = "ministack.core.lambda_runtime:Worker"
SPAWN = f"{WORKER}._spawn"
READ, DRAIN, DRAIN_LATER = f"{WORKER}._read_stderr", f"{WORKER}._drain_stderr", f"{WORKER}._drain_stderr_bounded"
CHUNK = 1 << 16  # bytes, as many as a pipe holds


class Worker(Protocol):
    """What this patch uses of MiniStack's worker, which has one process at a time, and adds to it: `lines`."""

    _proc: Any
    _stderr_queue: Any
    lines: "Lines"

    def _drain_stderr(self) -> str: ...


class Lines:
    """The lines that a process writes to a pipe. Threads may read them at the same time; each line is put once."""

    def __init__(self, pipe: IO[str], put: Callable[[str], None]) -> None:
        self._pipe, self._put = pipe, put
        self._lock = threading.Lock()
        self._rest = b""
        self._ended = False

    def read_all(self) -> None:
        """Put lines until the process has closed the pipe."""
        while not self._ended:
            self._is_readable(None)
            self.read_written()

    def read_written(self) -> None:
        """Put the lines that the process has written before this call."""
        with self._lock:
            while not self._ended and self._is_readable(0):
                self._take(os.read(self._pipe.fileno(), CHUNK))

    def _is_readable(self, milliseconds: int | None) -> bool:
        written = select.poll()
        written.register(self._pipe, select.POLLIN)
        return bool(written.poll(milliseconds))

    def _take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if not chunk:
            self._ended = True
            lines = [self._rest] if self._rest else []
        for line in lines:
            self._put(line.decode(errors="replace"))


def read(worker: Worker) -> None:
    """Read the lines of the worker's present process until it ends; MiniStack calls this in a thread at the start."""
    _lines(worker).read_all()


def drained(worker: Worker) -> str:
    """Return the lines of the invocation that has just responded, also if its process was ended then."""
    lines = worker.lines if worker._proc is None else _lines(worker)  # noqa: SLF001 - MiniStack's
    lines.read_written()
    return worker._drain_stderr()  # noqa: SLF001


def _lines(worker: Worker) -> Lines:
    """Return the lines of the worker's present process, the same for both threads."""
    process = worker._proc  # noqa: SLF001
    new = Lines(process.stderr, worker._stderr_queue.put)  # noqa: SLF001
    worker.lines = vars(process).setdefault("lines", new)
    return worker.lines


def _replacements() -> Mapping[str, object]:
    return {READ: read, DRAIN_LATER: drained}


PATCH = Patch(
    module=__name__,
    version=MINISTACK,
    sources={
        SPAWN: "c55febf956565c5e",
        READ: "d8eb30038f94ee61",
        DRAIN: "71498e9146cabc37",
        DRAIN_LATER: "3fd7cc742872e604",
    },
    replacements=_replacements,
)
