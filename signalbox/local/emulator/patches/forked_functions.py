"""Patch: processes of functions are forked from one that has imported the SDK for AWS, with a lower priority.

A function's process spends 0.3 s of a processor on importing boto3 before its own code. On AWS, instances start on
machines of their own, which also do not share processors with queues and tables. Here, on two busy cores, 24 clients
and 24 proxies at once do not find each other within the stage's time-outs without this patch.

Each instance is still a process of its own: it has the environment and credentials of its function, and imports the
function's code and the packages of its layers after the fork. Without descriptors of processes (Linux 5.3), processes
start as MiniStack starts them.
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
from types import SimpleNamespace
from typing import IO, Any

from signalbox.local.emulator import forks
from signalbox.local.emulator.patches.patch import Patch, original

SUBPROCESS = "ministack.core.lambda_runtime:subprocess"
LONGEST_COMMAND_LINE = 1_000
LONGEST_ID = 32


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


class Forks:
    """The process that forks the processes of functions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            program = [sys.executable, "-P", forks.__file__, str(number), "." * LONGEST_COMMAND_LINE]
            self._process = subprocess.Popen(program, pass_fds=[number], stdin=subprocess.DEVNULL)

    def start(self, arguments: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> ForkedProcess:
        """Start a program of Python, the last argument."""
        start = {"arguments": list(arguments), "folder": cwd, "environment": dict(env)}
        (input_end, ours_in), (ours_out, output_end), (ours_errors, errors_end) = (os.pipe() for _ in range(3))
        theirs = (input_end, output_end, errors_end)
        ours = ((ours_in, "w"), (ours_out, "r"), (ours_errors, "r"))
        streams = [open(*one, buffering=1, encoding="utf-8") for one in ours]  # noqa: PTH123, SIM115
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(start).encode()], theirs)
            process, descriptors, _, _ = socket.recv_fds(self._socket, LONGEST_ID, 1)
        for number in theirs:
            os.close(number)
        return ForkedProcess(int(process), descriptors[0], streams)


def with_forks(popen: Callable[..., Any], forks: Forks) -> Callable[..., Any]:
    """Return a `Popen` that forks the processes of Python."""

    def started(arguments: Sequence[str], **named: Any) -> object:  # noqa: ANN401 - Popen's
        if arguments[0] != sys.executable:
            return popen(arguments, **named)
        return forks.start(arguments, cwd=named["cwd"], env=named["env"])

    return started


def _replacements() -> Mapping[str, object]:
    if not hasattr(os, "pidfd_open"):
        return {}
    namespace = vars(original(SUBPROCESS))
    return {SUBPROCESS: SimpleNamespace(**{**namespace, "Popen": with_forks(namespace["Popen"], Forks())})}


PATCH = Patch(sources={"ministack.core.lambda_runtime:Worker._spawn": "c55febf956565c5e"}, replacements=_replacements)
