"""The client of the sandbox: requests to the engines with limits, and the reason where one is exceeded."""

import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

from signalbox.errors import UnavailableError
from signalbox.filters import sandbox
from signalbox.splitting.model.filters import FilterStopped, FilterUse, InvalidExpression

COMPILATION_SECONDS = 0.2
FREE_BYTES = 256 * 1024 * 1024  # for small patterns in this process: a quarter of the memory of the functions
REQUEST_SECONDS = 1.0
# A busy machine gives a process a part of its time: elapsed time may exceed the limit of CPU time by this factor.
PATIENCE = 3
START_LIMIT = timedelta(seconds=10)  # Python and the engines on a cold, busy machine; not counted against any filter
MAXIMUM_ANSWER_BYTES = 4 * 1024 * 1024
READ_BYTES = 65_536
MINIMUM_WAIT = 0.001  # 0 would mean no waiting at all, even for an answer that has arrived
LIBRARIES = ("jsonschema_rs", "jaq")
EMPTY_TEXT = '""'
MEGABYTES = sandbox.MEMORY_BYTES // 1024**2


class EnginesUnavailable(UnavailableError):
    """Raised when the sandbox, in which patterns and programs run, does not start."""


class Reservation:
    """Memory of this process for a pattern, which is free again when the pattern is deleted."""

    __slots__ = ("engines", "size")

    def __init__(self, engines: "Engines", size: int) -> None:
        self.engines, self.size = engines, size
        engines.free_bytes -= size

    def __del__(self) -> None:
        self.engines.free_bytes += self.size


@dataclass(slots=True)
class Engines:
    """Runs patterns and programs in the sandbox; a worker that a request breaks is replaced.

    `use` is what the current owner of filters has used. Use an instance from one thread only.
    """

    use: FilterUse = field(default_factory=lambda: FilterUse(steps=math.inf, pattern_bytes=math.inf))
    free_bytes: int = FREE_BYTES
    _sandbox: "subprocess.Popen[bytes] | None" = field(default=None, init=False, repr=False)
    _control: socket.socket | None = field(default=None, init=False, repr=False)
    _worker: socket.socket | None = field(default=None, init=False, repr=False)

    def reserved(self, size: int) -> Reservation | None:
        """Reserve memory of this process; return None if its owner, or all owners together, have used their share."""
        if size > self.use.pattern_bytes or size > self.free_bytes:
            return None
        self.use.pattern_bytes -= size
        return Reservation(self, size)

    def compile(self, task: str, source: object, *, name: str) -> None:
        """Compile a pattern or a program; `name` says what it is. Raises `InvalidExpression`."""
        try:
            self.answer(task, source, EMPTY_TEXT, name=name, limit=COMPILATION_SECONDS)
        except FilterStopped as error:
            raise InvalidExpression(f"{error}, to compile") from error

    def answer(
        self, task: str, source: object, document: str, *, name: str, limit: float = REQUEST_SECONDS
    ) -> Mapping[str, object]:
        """Return the worker's response to a request. Raises `InvalidExpression` and `FilterStopped`."""
        seconds = min(limit, self.use.limit_seconds - self.use.seconds)
        if seconds <= 0:
            raise FilterStopped(
                f"{name} took longer than {self.use.limit_seconds:.2g} s, together with the evaluations before it"
            )
        worker, started = self._ready_worker(), time.monotonic()
        request = f"{json.dumps([task, source, seconds])}\n{document}\n".encode()
        line = _exchanged(worker, request, started + seconds * PATIENCE)
        elapsed = time.monotonic() - started
        self.use.elapsed_seconds += elapsed
        if line is None:
            self.use.seconds += seconds
            raise FilterStopped(f"{name} {self._cause(seconds)}")
        answer: Mapping[str, object] = json.loads(line)
        # Many short requests take longer than the worker's processor time.
        self.use.seconds += max(float(str(answer["seconds"])), elapsed / PATIENCE)
        if answer["is_full"]:
            self._close_worker()
        if "broken" in answer:
            raise FilterStopped(f"{name} {answer['broken']}")
        if "invalid" in answer:
            raise InvalidExpression(f"{name}: {answer['invalid']}")
        return answer

    def close(self) -> None:
        """End the sandbox if it runs."""
        self._close_worker()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._sandbox is not None:
            self._sandbox.kill()
            self._sandbox.wait()
            self._sandbox = None

    def _close_worker(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _cause(self, seconds: float) -> str:
        """Replace the worker that a request broke; return the reason, as it follows the name of the request."""
        signals = os.WTERMSIG(self._replace_worker())
        if signals in (signal.SIGPROF, signal.SIGKILL):  # its own timer, or the replacement after too long a wait
            return f"took longer than {seconds:.2g} s"
        return f"used more than {MEGABYTES} MB or broke its engine"

    def _ready_worker(self) -> socket.socket:
        if self._worker is None:
            self._replace_worker()
        assert self._worker is not None  # noqa: S101 - just replaced
        return self._worker

    def _replace_worker(self) -> int:
        """Fork a worker; return the wait status of the one before. Raises `EnginesUnavailable`."""
        if self._sandbox is not None:
            try:
                return self._fork()
            except OSError:  # the sandbox itself has ended, for example because the system ran out of memory
                self.close()
        self._start()
        return 0

    def _fork(self) -> int:
        control, (ours, theirs) = self._control, socket.socketpair()
        assert control is not None  # noqa: S101 - `_start` has set it
        with theirs:
            socket.send_fds(control, [b"w"], [theirs.fileno()])
        status = control.recv(4)
        if len(status) < 4:  # noqa: PLR2004 - the bytes of a wait status
            ours.close()
            raise OSError("the sandbox has ended")
        self._close_worker()
        self._worker = ours
        return int.from_bytes(status, "big")

    def _start(self) -> None:
        """Start the sandbox. Raises `EnginesUnavailable`."""
        self._control, theirs = socket.socketpair()
        self._control.settimeout(START_LIMIT.total_seconds())
        number = theirs.fileno()
        command = [sys.executable, "-P", "-s", "-S", "-B", sandbox.__file__, str(number)]
        # Lambda's Python finds its own libraries there; the sandbox clears its environment before it serves.
        environment = {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"}
        environment["PYTHONPATH"] = os.pathsep.join(_folders())
        with theirs:
            self._sandbox = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                command,
                env=environment,
                pass_fds=[number],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        try:
            self._fork()
        except OSError as error:
            self.close()
            raise EnginesUnavailable("the sandbox, in which patterns and programs run, did not start") from error


def _folders() -> list[str]:
    found = {name: find_spec(name) for name in LIBRARIES}
    missing = [name for name, spec in found.items() if spec is None or spec.origin is None]
    if missing:
        raise EnginesUnavailable(f"the modules {', '.join(missing)} are not installed, so filters cannot run")
    files = (Path(str(spec.origin)) for spec in found.values() if spec)
    return sorted({str(file.parents[file.stem == "__init__"]) for file in files})


def _exchanged(worker: socket.socket, request: bytes, deadline: float) -> bytes | None:
    """Return the response line; None if it is late, too long, or the worker has ended."""
    line = b""
    try:
        _wait_until(worker, deadline)
        worker.sendall(request)
        while not line.endswith(b"\n") and len(line) < MAXIMUM_ANSWER_BYTES:
            _wait_until(worker, deadline)
            part = worker.recv(READ_BYTES)
            if not part:
                return None
            line += part
    except OSError:  # also a timeout, or a worker that ended while it was sent a request
        return None
    return line if line.endswith(b"\n") else None


def _wait_until(worker: socket.socket, deadline: float) -> None:
    """Let the next call of a socket end at a time of the monotonic clock, or at once if it has passed."""
    worker.settimeout(max(deadline - time.monotonic(), MINIMUM_WAIT))
