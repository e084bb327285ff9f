"""The heartbeats of a splitting session while a program uses it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.clients.splitting.sessions import SessionClient, SessionEnded, end_message
from signalbox.control.protocol import CommandRejected
from signalbox.errors import SignalboxError

SECONDS_BETWEEN_HEARTBEATS = 10.0


@dataclass(slots=True)
class HeartbeatThread:
    """A thread that sends a session's heartbeats; `ended` is set if the session ended from outside.

    `say` prints why a heartbeat failed.
    """

    client: SessionClient
    say: Callable[[str], None]
    on_end: Callable[[], None] = lambda: None
    seconds: float = SECONDS_BETWEEN_HEARTBEATS
    ended: threading.Event = field(default_factory=threading.Event)
    _reason: str = ""
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator["HeartbeatThread"]:
        """Send heartbeats during the block; afterwards only the caller uses the client."""
        # A daemon: a stage that does not reply must not keep a command from ending.
        thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _run(self) -> None:
        while not self._over.wait(self.seconds):
            try:
                state = self.client.heartbeat()
            except CommandRejected as error:
                self._end(str(error))
                return
            except (SignalboxError, BotoCoreError, ClientError) as error:
                # The next heartbeat may succeed; if none does, the stage ends the session.
                self.say(f"heartbeat failed: {error}")
                continue
            if state.has_ended:
                self._end(end_message(state))
                return

    def _end(self, reason: str) -> None:
        self._reason = reason
        self.ended.set()
        self.on_end()

    def check(self) -> None:
        """Raise `SessionEnded` if the session ended from outside."""
        if self.ended.is_set():
            raise SessionEnded(self._reason)
