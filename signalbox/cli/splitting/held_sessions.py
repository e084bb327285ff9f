"""Sessions that live as long as a command: signs of life, signals, and an end in every case."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING

from signalbox.cli.shared.signals import STATUS_OF_SIGNALS, handling
from signalbox.cli.shared.stage import say
from signalbox.clients.splitting.sessions import SessionEnded, ending
from signalbox.control.protocol import CommandRejected
from signalbox.errors import RejectedError, SignalboxError
from signalbox.splitting.control.protocol import GONE

if TYPE_CHECKING:
    from signalbox.clients.splitting.sessions import SessionClient
    from signalbox.splitting.control.protocol import SessionState

SECONDS_BETWEEN_BEATS = 10.0


@dataclass(slots=True)
class Pulse:
    """The signs of life of a session, from a thread of their own; `ended` is set if it ended without us."""

    client: "SessionClient"
    on_end: Callable[[], None] = lambda: None
    seconds: float = SECONDS_BETWEEN_BEATS
    ended: threading.Event = field(default_factory=threading.Event)
    _reason: str = ""
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def beating(self) -> Iterator["Pulse"]:
        """Give signs of life meanwhile; afterwards nobody but the caller uses the client any more."""
        # A daemon: a stage that does not reply must not keep a command from ending.
        thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _beat(self) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        while not self._over.wait(self.seconds):
            try:
                state = self.client.beat()
            except (SignalboxError, BotoCoreError, ClientError) as error:
                # The next may get through; if none does, the stage ends the session as it should.
                say(f"no sign of life could be given: {error}")
                continue
            if state.has_ended:
                self._reason = ending(state)
                self.ended.set()
                self.on_end()
                return

    def check(self) -> None:
        """Raise `SessionEnded` if the session ended without us."""
        if self.ended.is_set():
            raise SessionEnded(self._reason)


@contextmanager
def held(client: "SessionClient", *, timeout: timedelta) -> Iterator["SessionState"]:
    """Start a session and end it however the block ends; a start that fails or is interrupted ends it too."""
    try:
        state = client.start(timeout=timeout)
    except (CommandRejected, SessionEnded):
        raise  # there is nothing of ours to end: a session of that name may be somebody else's
    except BaseException:
        stop(client)
        raise
    try:
        yield state
    finally:
        stop(client)


def stop(client: "SessionClient") -> None:
    """End a session; if that cannot be said, the stage finds out by itself."""
    from botocore.exceptions import BotoCoreError, ClientError

    name = client.request.session
    try:
        state = client.stop()
    except (SignalboxError, BotoCoreError, ClientError) as error:
        say(f"session {name!r} could not be told to end, and ends without signs of life in a minute: {error}")
    else:
        say(f"session {name!r} {'is gone' if state.phase == GONE else 'ends; what it left is returned meanwhile'}")


@dataclass(slots=True)
class Command:
    """A command that runs beside a session; signals go on to it."""

    words: Sequence[str]
    environment: Mapping[str, str]
    _process: "subprocess.Popen[bytes] | None" = None
    _pending: list[int] = field(default_factory=list)

    def run(self) -> int:
        """Run to its end and return its status as a shell would. Raises `RejectedError` if it does not start."""
        with handling(self._pass_on):
            return self._run()

    def end(self) -> None:
        """Ask it to end, even before it began."""
        self._send(signal.SIGTERM)

    def _run(self) -> int:
        try:
            # What the user gave is what is to be run, as themselves.
            self._process = subprocess.Popen(self.words, env={**os.environ, **self.environment})  # noqa: S603
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


def _is_in_foreground() -> bool:
    """Say whether Ctrl-C at our terminal reaches the command without us."""
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123 - a device, not a path of ours
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
