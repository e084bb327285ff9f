"""A process that has imported the SDK for AWS and forks a process for each instance of a function.

`patches/forked_functions.py` starts it with the Python of the functions, which do not have this package. Arguments: the
number of its socket, and a filler, since processes write their own command line over these arguments. Each message on
the socket is a start as JSON, with the standard streams as file descriptors; the response is the id of the new process
with its file descriptor.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# MiniStack's program imports the first itself, before the function's code.
SDK = ("botocore.handlers", "boto3.session")
LONGEST_START = 1 << 18  # bytes: a function has 4 KB of environment variables at most
STREAMS = 3
# Added to the emulator's niceness: without it, a burst of cold starts delays every call of the running functions.
NICENESS = 10
# Positions in /proc/PID/stat after the name of the program (proc_pid_stat(5): fields 48 and 49).
ARGUMENTS_START, ARGUMENTS_END = 45, 46


def main(arguments: Sequence[str]) -> None:
    """Fork a process for each message until the emulator has ended; in such a process, run its program."""
    os.nice(NICENESS)
    for name in SDK:
        importlib.import_module(name)
    gc.freeze()  # no collection in an instance copies the pages that it shares with the others
    signal.signal(signal.SIGCHLD, _collect)
    with socket.socket(fileno=int(arguments[0])) as emulator:
        program = _fork_all(emulator)
    if program is not None:
        runpy.run_path(program, run_name="__main__")


def _collect(_number: int, _frame: object) -> None:
    """Collect the processes that have ended: the emulator has a descriptor of each, and is not their parent."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _fork_all(emulator: socket.socket) -> str | None:
    """Return the path of the program in each new process, and None when the emulator has ended."""
    while True:
        message, streams, _, _ = socket.recv_fds(emulator, LONGEST_START, STREAMS)
        if not message:
            return None
        # Nothing collects the process before it has its descriptor: its id could belong to another one by then.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        process = os.fork()
        if process == 0:
            return _program(json.loads(message), streams)
        descriptor = os.pidfd_open(process)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        socket.send_fds(emulator, [str(process).encode()], [descriptor])
        for number in (descriptor, *streams):
            os.close(number)


def _program(start: Mapping[str, Any], streams: Sequence[int]) -> str:
    """Make this process the function's; return the path of its program."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    _show(start["arguments"])
    os.chdir(start["folder"])
    os.environ.clear()
    os.environ.update(start["environment"])
    time.tzset()
    program: str = start["arguments"][-1]
    sys.argv = [program]
    return program


def _show(arguments: Sequence[str]) -> None:
    """Show these as the command line of this process."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[ARGUMENTS_START]), int(fields[ARGUMENTS_END])
    text = "\0".join(arguments).encode()[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


if __name__ == "__main__":
    main(sys.argv[1:])
