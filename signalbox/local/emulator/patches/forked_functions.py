"""Patch: processes of functions are forked from one that has imported the SDK for AWS.

A function's process spends 0.3 s of a processor on importing boto3 before its own code. On AWS, instances start on
machines of their own; here, on two cores, twenty instances that start together take three seconds more to respond, and
tests that kill instances spend most of the machine's time on starting them again.

Each instance is still a process of its own: it has the environment and credentials of its function, and imports the
function's code and the packages of its layers after the fork. Without Linux' descriptors of processes (`pidfd_open`,
Linux 5.3), processes start as MiniStack starts them.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from signalbox.local.emulator import forks
from signalbox.local.emulator.patches.patch import Patch, original

MINISTACK = "1.5.33"
SPAWN = "ministack.core.lambda_runtime:Worker._spawn"
SUBPROCESS = "ministack.core.lambda_runtime:subprocess"
LAYERS = "_LAMBDA_LAYERS_DIRS"
# An interpreter, the C library and the dynamic loader read these when a program starts, and boto3 when it is imported.
READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "HOME")
LONGEST_COMMAND_LINE = 1_000
LONGEST_ID = 32

Kind = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
"""What the processes of one parent have in common: folders of layers, and variables that are read at the start."""


class ForkedProcess:
    """A process that another one has forked, with what MiniStack uses of `subprocess.Popen`."""

    def __init__(self, process: int, descriptor: int, streams: Sequence[IO[str]]) -> None:
        self.pid = process
        self.stdin, self.stdout, self.stderr = streams
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)  # not earlier: another thread may look at it

    def poll(self) -> int | None:
        """Return None while the process runs, and 0 afterwards: only its parent receives its status."""
        return self._status_after(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended; raises `subprocess.TimeoutExpired` after `timeout` seconds."""
        status = self._status_after(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)

    def _status_after(self, seconds: float | None) -> int | None:
        end = select.poll()
        end.register(self._descriptor, select.POLLIN)
        return 0 if end.poll(None if seconds is None else seconds * 1_000) else None


class Parent:
    """A process that forks; it starts when it is first needed, and again if it has ended."""

    def __init__(self, kind: Kind) -> None:
        self._layers, self._variables = kind
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, message: bytes) -> ForkedProcess:
        """Fork the process of a start, as `forks.py` describes it."""
        pipes = [os.pipe() for _ in range(forks.STREAMS)]
        (input_end, our_input), (our_output, output_end), (our_errors, errors_end) = pipes
        theirs = (input_end, output_end, errors_end)
        try:
            process, descriptor = self._forked(message, theirs)
        except OSError:
            for number in (our_input, our_output, our_errors):
                os.close(number)
            raise
        finally:
            for number in theirs:
                os.close(number)
        ours = ((our_input, "w"), (our_output, "r"), (our_errors, "r"))
        return ForkedProcess(process, descriptor, [open(*one, buffering=1, encoding="utf-8") for one in ours])  # noqa: PTH123

    def _forked(self, message: bytes, streams: Sequence[int]) -> tuple[int, int]:
        with self._lock:
            try:
                return self._asked(message, streams)
            except OSError:  # it has ended
                self._socket = None
                return self._asked(message, streams)

    def _asked(self, message: bytes, streams: Sequence[int]) -> tuple[int, int]:
        self._socket = self._socket or self._start()
        socket.send_fds(self._socket, [message], streams)
        process, descriptors, _, _ = socket.recv_fds(self._socket, LONGEST_ID, 1)
        if not process:
            raise ConnectionResetError
        return int(process), descriptors[0]

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = str(theirs.fileno())
        program = [sys.executable, "-P", forks.__file__, number, *self._layers, "." * LONGEST_COMMAND_LINE]
        with theirs:
            self._process = subprocess.Popen(
                program, env=dict(self._variables), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        return ours


class Forks:
    """Starts processes of functions, with one parent for each kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parents: dict[Kind, Parent] = {}

    def start(self, arguments: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> ForkedProcess:
        """Start a program of Python, the last argument."""
        kind = kind_of(env)
        with self._lock:
            parent = self._parents.setdefault(kind, Parent(kind))
        start = {"arguments": list(arguments), "folder": cwd, "environment": dict(env)}
        return parent.fork(json.dumps(start).encode())


def kind_of(environment: Mapping[str, str]) -> Kind:
    """Return the kind of a process with these environment variables."""
    folders = filter(None, environment.get(LAYERS, "").split(os.pathsep))
    variables = sorted(item for item in environment.items() if item[0].startswith(READ_AT_START))
    return tuple(str(Path(folder).resolve()) for folder in folders), tuple(variables)


def with_forks(popen: Callable[..., Any], forks: Forks) -> Callable[..., Any]:
    """Return a `Popen` that forks the processes of Python."""

    def started(arguments: Sequence[str], **named: Any) -> object:  # noqa: ANN401 - Popen's
        if arguments[0] != sys.executable:
            return popen(arguments, **named)
        return forks.start(arguments, cwd=named["cwd"], env=named["env"])

    return started


def are_possible() -> bool:
    """Return whether this system has descriptors of processes."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # not Linux, an older one, or one whose sandbox lacks the call
        return False
    return Path("/proc/self/stat").exists()


def _replacements() -> Mapping[str, object]:
    if not are_possible():
        return {}
    namespace = vars(original(SUBPROCESS))
    return {SUBPROCESS: SimpleNamespace(**{**namespace, "Popen": with_forks(namespace["Popen"], Forks())})}


PATCH = Patch(
    module=__name__,
    version=MINISTACK,
    sources={SPAWN: "c55febf956565c5e", SUBPROCESS: None},
    replacements=_replacements,
)
