"""The process in which a handler runs: started, asked, killed at its time-out, and started again for changed code."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from signalbox.cli.shared.stage import say
from signalbox.cli.splitting.handler.child import signalbox_handler as child
from signalbox.cli.splitting.handler.source_files import SourceFiles
from signalbox.clients.splitting.handler.response import InvocationEnd
from signalbox.errors import RejectedError

STANDARD_ERROR = 2
EXIT_SECONDS = 2  # between the end of its pipe and that of the process
TICK_SECONDS = 0.5  # how often a wait looks whether the session has ended
EXITED: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler `module.function` below a folder, with the command of its interpreter."""

    name: str
    folder: Path
    python: str
    environment: Mapping[str, str] = field(repr=False)
    function_arn: str
    timeout: timedelta
    has_timeout: bool = True
    prints_to_errors: bool = False
    """Whether its standard output goes to standard error."""

    def check(self) -> None:
        """Raise `RejectedError` if there is no such module; it is imported later, with the session's variables."""
        module, _, function = self.name.rpartition(".")
        path = self.folder.joinpath(*module.replace("/", ".").split("."))
        if not module or not function:
            raise RejectedError(f"handler {self.name!r} is not MODULE.FUNCTION")
        if not path.with_suffix(".py").is_file() and not (path / "__init__.py").is_file():
            raise RejectedError(f"there is no module {module!r} in {str(self.folder)!r}; --code names its folder")


@dataclass(slots=True)
class HandlerProcess:
    """Invokes a handler in a process of its own, one batch at a time."""

    handler: Handler
    ended: threading.Event
    _files: SourceFiles = field(init=False)
    _running: "_Running | None" = None
    _has_failed: bool = False

    def __post_init__(self) -> None:
        self._files = SourceFiles(self.handler.folder)

    @contextmanager
    def running(self) -> Iterator["HandlerProcess"]:
        """Start the handler, and end its process with the block; the terminal is left as it was."""
        with _terminal_kept():
            try:
                self.is_ready()
                yield self
            finally:
                self._end()

    def is_ready(self) -> bool:
        """Start the handler again if its code has changed; return whether it could be imported."""
        if changed := self._files.changed():
            say(f"{', '.join(changed[:5])} changed: the handler is loaded again")
            self._end()
            self._has_failed = False
        if self._running is None and not self._has_failed:
            self._start()
        return self._running is not None

    def invoke(self, event: Mapping[str, Any], request_id: str) -> InvocationEnd:
        """Call the handler and return its response or error; it is killed at its time-out or the session's end."""
        if not self.is_ready() or self._running is None:
            return InvocationEnd(error="the handler cannot be imported")
        running, timeout = self._running, self.handler.timeout.total_seconds()
        end = time.monotonic() + timeout if self.handler.has_timeout else None
        request = {
            "event": event,
            "request_id": request_id,
            "function_arn": self.handler.function_arn,
            "deadline": None if end is None else time.time() + timeout,
            "timeout": timeout,
        }
        running.ask(request)
        return self._answer(running, end)

    def _answer(self, running: "_Running", end: float | None) -> InvocationEnd:
        while not self.ended.is_set():
            reply = running.reply(_until(end))
            if reply is None and end is not None and time.monotonic() >= end:
                self._end()
                seconds = self.handler.timeout.total_seconds()
                return InvocationEnd(error=f"Sandbox.Timedout: Task timed out after {seconds:.2f} seconds")
            if reply is EXITED:
                with suppress(subprocess.TimeoutExpired):
                    running.process.wait(EXIT_SECONDS)
                status = self._end()
                return InvocationEnd(error=f"Runtime.ExitError: Runtime exited with status {status}")
            if reply and "debugging" in reply:
                if end is not None:
                    say("a debugger is used: the time-out does not end this batch")
                end = None
            elif reply:
                return InvocationEnd(reply.get("response", "null"), reply.get("error"))
        self._end()
        return InvocationEnd(error="the session has ended")

    def _start(self) -> None:
        running = _Running.start(self.handler)
        self._running = running
        reply = None
        while reply is None and not self.ended.is_set():
            reply = running.reply(TICK_SECONDS)
        if reply and "ready" in reply:
            return
        self._has_failed = True
        self._end()
        reason = (reply or {}).get("failed", "its process has ended")
        say(f"{self.handler.name} cannot be imported, so no message is received until its code changes: {reason}")

    def _end(self) -> int | None:
        running, self._running = self._running, None
        return None if running is None else running.end()


@dataclass(frozen=True, slots=True)
class _Running:
    """A running process, and what it replies."""

    process: "subprocess.Popen[bytes]"
    requests: IO[str]
    replies: "queue.SimpleQueue[Mapping[str, Any]]"

    @classmethod
    def start(cls, handler: Handler) -> "_Running":
        (read_requests, write_requests), (read_replies, write_replies) = os.pipe(), os.pipe()
        numbers = {child.REQUESTS: str(read_requests), child.REPLIES: str(write_replies)}
        folders = filter(None, (str(handler.folder), handler.environment.get("PYTHONPATH")))
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own handler, with their own permissions
                [handler.python, child.__file__, handler.name],
                env={**handler.environment, **numbers, "PYTHONPATH": os.pathsep.join(folders)},
                pass_fds=(read_requests, write_replies),
                stdout=STANDARD_ERROR if handler.prints_to_errors else None,
            )
        except OSError as error:
            os.close(write_requests)
            os.close(read_replies)
            raise RejectedError(f"cannot run {handler.python!r}: {error}") from error
        finally:
            os.close(read_requests)
            os.close(write_replies)
        replies: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(read_replies, replies), daemon=True).start()
        return cls(process, os.fdopen(write_requests, "w", encoding="utf-8"), replies)

    def ask(self, request: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError):  # it has exited, which is the reply
            self.requests.write(json.dumps(request) + "\n")
            self.requests.flush()

    def reply(self, seconds: float) -> Mapping[str, Any] | None:
        """Return the next reply, `EXITED`, or None if there is none within these seconds."""
        try:
            return self.replies.get(timeout=seconds)
        except queue.Empty:
            return None

    def end(self) -> int:
        self.process.kill()
        status = self.process.wait()
        with suppress(BrokenPipeError):
            self.requests.close()
        return status


def _read(descriptor: int, replies: "queue.SimpleQueue[Mapping[str, Any]]") -> None:
    with os.fdopen(descriptor, encoding="utf-8") as lines:
        for line in lines:
            replies.put(json.loads(line))
    replies.put(EXITED)


def _until(end: float | None) -> float:
    return TICK_SECONDS if end is None else max(0.0, min(TICK_SECONDS, end - time.monotonic()))


@contextmanager
def _terminal_kept() -> Iterator[None]:
    """Restore the terminal: a debugger that is killed at its prompt leaves it without echo."""
    if not sys.stdin.isatty():
        yield
        return
    import termios

    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def interpreter(chosen: str | None, environment: Mapping[str, str]) -> str:
    """Return the Python of a handler: the chosen one, that of the active virtual environment, or our own."""
    active = environment.get("VIRTUAL_ENV")
    return chosen or (str(Path(active, "bin", "python")) if active else sys.executable)
