"""A session as the one who wants it sees it: started, waited for, kept alive and ended by commands."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from signalbox.clients.control import NoControlReply
from signalbox.control.protocol import CommandUnavailable
from signalbox.errors import RejectedError, UnavailableError
from signalbox.splitting.control.protocol import READY, SessionState

SECONDS_BETWEEN_LOOKS = 1.0
# Less than half of the time after which a session without a sign of life ends.
BEAT_TIMEOUT = timedelta(seconds=20)


class SessionEnded(RejectedError):
    """Raised when a session ended that should go on; the text has the stage's reason."""


class SessionNotReady(UnavailableError):
    """Raised when a session is not ready in time."""


class Control(Protocol):
    """What asks a stage for things: `ControlClient`."""

    def ask(self, command: str, fields: Mapping[str, object], *, timeout: timedelta | None = None) -> object:
        """Send a command and return its result."""
        ...


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Who wants what of which target; `config` is a whole mirrord.json."""

    target: str
    session: str
    owner: str
    config: object


def _ignore_state(_state: SessionState) -> None:
    """Show no progress."""


def _ignore_text(_text: str) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class SessionClient:
    """One session's commands; `on_progress` is told of every new phase, `on_wait` why it cannot start yet."""

    control: Control
    request: SessionRequest
    on_progress: Callable[[SessionState], None] = _ignore_state
    on_wait: Callable[[str], None] = _ignore_text
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def start(self, *, timeout: timedelta) -> SessionState:
        """Start the session and return it when it is ready; one of the same name and kind is waited for.

        Raises `SessionEnded` when it ended on the way, `SessionNotReady`, and what `Control.ask` raises.
        """
        deadline = self.clock() + timeout.total_seconds()
        state = self._started(deadline)
        self.on_progress(state)
        while state.phase != READY:
            if state.has_ended:
                raise SessionEnded(ending(state))
            if self.clock() >= deadline:
                raise SessionNotReady(f"session {state.session!r} is still {state.phase} when its time is up")
            self.sleep(SECONDS_BETWEEN_LOOKS)
            before, state = state, self._looked(state)
            if state.phase != before.phase:
                self.on_progress(state)
        return state

    def _looked(self, before: SessionState) -> SessionState:
        """Return how the session is, or was when the stage does not reply: there is time to ask again."""
        try:
            return self.beat()
        except NoControlReply as error:
            self.on_wait(str(error))
            return before

    def _started(self, deadline: float) -> SessionState:
        request, told = self.request, ""
        fields = self._named | {"owner": request.owner, "config": request.config}
        while True:
            try:
                return SessionState.parse(self.control.ask("start", fields))
            except (CommandUnavailable, NoControlReply) as error:
                # Such as a split that is just being undone: the same again in a moment is what helps, and harmless.
                if self.clock() >= deadline:
                    raise
                if str(error) != told:
                    told = str(error)
                    self.on_wait(told)
            self.sleep(SECONDS_BETWEEN_LOOKS)

    def beat(self) -> SessionState:
        """Give a sign of life and return how the session is."""
        return SessionState.parse(self.control.ask("heartbeat", self._named, timeout=BEAT_TIMEOUT))

    def stop(self) -> SessionState:
        """End the session and return how it is; what it did not consume is returned meanwhile."""
        return SessionState.parse(self.control.ask("stop", self._named))

    @property
    def _named(self) -> dict[str, object]:
        return {"target": self.request.target, "session": self.request.session}


def ending(state: SessionState) -> str:
    """Return in words that a session ended, and why."""
    return f"session {state.session!r} has ended: {state.reason or 'the stage has no reason any more'}"


def mirrored(document: object) -> object:
    """Return a mirrord.json whose session gets copies and takes nothing; what is wrong with it stays as it is."""
    feature = document.get("feature") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(feature, Mapping):
        return document
    queues = feature.get("split_queues")
    changed: object = queues
    if isinstance(queues, Mapping):
        changed = {name: _as_mirror(entry) for name, entry in queues.items()}
    if isinstance(queues, list):
        changed = [_as_mirror(entry) for entry in queues]
    return {**document, "feature": {**feature, "split_queues": changed}}


def _as_mirror(entry: object) -> object:
    return {**entry, "queue_mode": "mirror"} if isinstance(entry, Mapping) else entry
