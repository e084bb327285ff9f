"""Sessions that last as long as a command: signals, and a guaranteed end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import FrameType

from signalbox.cli.shared.signals import STATUS_OF_SIGNALS, handling
from signalbox.cli.shared.stage import say
from signalbox.clients.splitting.sessions import SessionClient, SessionEnded
from signalbox.control.protocol import CommandRejected
from signalbox.errors import RejectedError, SignalboxError
from signalbox.splitting.control.protocol import SessionStatus

# prctl(2): the kernel sends SIGTERM (15) to the process when its parent ends (PR_SET_PDEATHSIG, 1), and `exec` keeps
# that. The parent may have ended before the call.
WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"cannot run {sys.argv[2]!r}: {error}")
"""


@contextmanager
def held_session(client: SessionClient, *, timeout: timedelta) -> Iterator[SessionStatus]:
    """Start a session, and end it however the block ends, including a failed or interrupted start."""
    try:
        state = client.start(timeout=timeout)
    except (CommandRejected, SessionEnded):
        raise  # nothing was started: a session of that name may belong to another user
    except BaseException:
        stop(client)
        raise
    try:
        yield state
    finally:
        stop(client)


def stop(client: SessionClient) -> None:
    """End a session; if that fails, the stage ends it after its missing heartbeats."""
    from botocore.exceptions import BotoCoreError, ClientError

    name = client.request.session
    try:
        client.stop()
    except CommandRejected as error:
        say(str(error))
    except (SignalboxError, BotoCoreError, ClientError) as error:
        say(f"session {name!r} could not be stopped; it ends without heartbeats in a minute: {error}")
    else:
        say(f"session {name!r} is ending; its unconsumed messages are returned")


@dataclass(slots=True)
class ChildProcess:
    """A child process that runs during a session; signals are passed to it. `environment` is all of its variables."""

    words: Sequence[str]
    environment: Mapping[str, str]
    _process: subprocess.Popen[bytes] | None = None
    _pending: list[int] = field(default_factory=list)

    def run(self) -> int:
        """Run to the end and return the exit status of a shell. Raises `RejectedError` if it does not start."""
        with handling(self._pass_on):
            return self._run()

    def end(self) -> None:
        """Send SIGTERM, also if the process has not started yet."""
        self._send(signal.SIGTERM)

    def _run(self) -> int:
        try:
            # The user runs their own command with their own permissions.
            self._process = subprocess.Popen(_with_parent(self.words), env=dict(self.environment))  # noqa: S603
        except OSError as error:
            raise RejectedError(f"cannot run {self.words[0]!r}: {error}") from error
        for number in self._pending:
            self._process.send_signal(number)
        status = self._process.wait()
        return STATUS_OF_SIGNALS - status if status < 0 else status

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT or not _is_in_foreground():
            self._send(number)

    def _send(self, number: int) -> None:
        if self._process is None:
            self._pending.append(number)
        else:
            self._process.send_signal(number)


def _with_parent(words: Sequence[str]) -> Sequence[str]:
    """Return the command that also ends when this process is killed; such a command exists on Linux only.

    Without it, the command would go on taking messages of a session without heartbeats.
    """
    if sys.platform != "linux":
        return words
    return [sys.executable, "-I", "-S", "-c", WITH_PARENT, str(os.getpid()), *words]


def _is_in_foreground() -> bool:
    """Return whether Ctrl-C at the terminal reaches the child process directly."""
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123 - a device, not a path of ours
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
