"""The client of a splitting session: starts it, waits for it, keeps it alive and ends it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from signalbox.clients.control import NoControlReply
from signalbox.control.protocol import CommandUnavailable
from signalbox.errors import RejectedError, UnavailableError
from signalbox.splitting.control.protocol import READY, SessionStatus
from signalbox.splitting.model.claims import Mode
from signalbox.splitting.model.session_config import WHOLE_TARGET, split_queues_of

POLL_SECONDS = 1.0
# Less than half of the time after which a session without a heartbeat ends.
HEARTBEAT_TIMEOUT = timedelta(seconds=20)


class SessionEnded(RejectedError):
    """Raised when a session ended that should continue; the text has the stage's reason."""


class SessionNotReady(UnavailableError):
    """Raised when a session is not ready in time."""


class Control(Protocol):
    """A client that sends commands to a stage: `ControlClient`."""

    def ask(self, command: str, fields: Mapping[str, object], *, timeout: timedelta | None = None) -> object:
        """Send a command and return its result."""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A request for a session of a target; `config` is a whole mirrord.json.

    With `since_seconds` the session first gets the messages kept in that time.
    """

    target: str
    session: str
    owner: str
    config: object
    since_seconds: int | None = None


def _ignore_state(_state: SessionStatus) -> None: ...


def _ignore_text(_text: str) -> None: ...


@dataclass(slots=True)
class SessionClient:
    """The commands of one session; `on_progress` receives each change of its status, `on_wait` the reason of a delay.

    Changes are new phases and numbers of replayed messages. After the start the target's name is the stage's, which
    completes that of a Kubernetes workload.
    """

    control: Control
    request: SessionRequest
    on_progress: Callable[[SessionStatus], None] = _ignore_state
    on_wait: Callable[[str], None] = _ignore_text
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _target: str = field(init=False)

    def __post_init__(self) -> None:
        self._target = self.request.target

    def start(self, *, timeout: timedelta) -> SessionStatus:
        """Start the session and return its status when it is ready; an identical existing session is joined.

        Raises `SessionEnded`, `SessionNotReady`, and the errors of `Control.ask`.
        """
        deadline = self.clock() + timeout.total_seconds()
        state = self._started(deadline)
        self._target = str(state.document.get("target", self._target))
        self.on_progress(state)
        while state.phase != READY:
            if state.has_ended:
                raise SessionEnded(end_message(state))
            if self.clock() >= deadline:
                raise SessionNotReady(f"session {state.session!r} is still {state.phase} after the timeout")
            self.sleep(POLL_SECONDS)
            before, state = state, self._poll(state)
            if (state.phase, state.replayed) != (before.phase, before.replayed):
                self.on_progress(state)
        return state

    def _poll(self, before: SessionStatus) -> SessionStatus:
        """Return the current status, or `before` if the stage does not reply: there is time to ask again."""
        try:
            return self.heartbeat()
        except NoControlReply as error:
            self.on_wait(str(error))
            return before

    def _started(self, deadline: float) -> SessionStatus:
        request, reported = self.request, ""
        fields = self._named | {"owner": request.owner, "config": request.config}
        if request.since_seconds is not None:
            fields["since_seconds"] = request.since_seconds
        while True:
            try:
                return SessionStatus.parse(self.control.ask("start", fields))
            except (CommandUnavailable, NoControlReply) as error:
                # For example a split that is being undone: repeating the command is harmless and helps.
                if self.clock() >= deadline:
                    raise
                if str(error) != reported:
                    reported = str(error)
                    self.on_wait(reported)
            self.sleep(POLL_SECONDS)

    def heartbeat(self) -> SessionStatus:
        """Send a heartbeat and return the status."""
        return SessionStatus.parse(self.control.ask("heartbeat", self._named, timeout=HEARTBEAT_TIMEOUT))

    def stop(self) -> SessionStatus:
        """End the session and return its status; unconsumed messages are returned in the background."""
        return SessionStatus.parse(self.control.ask("stop", self._named))

    def known(self) -> list[str]:
        """Return the names of all sessions of the target."""
        status = self.control.ask("status", {"target": self._target})
        splits = status.get("splits", ()) if isinstance(status, Mapping) else ()
        return [str(session["session"]) for split in splits for session in split["sessions"]]

    @property
    def _named(self) -> dict[str, object]:
        return {"target": self._target, "session": self.request.session}


def end_message(state: SessionStatus) -> str:
    """Return a message that a session ended, with the reason."""
    return f"session {state.session!r} has ended: {state.reason or 'the stage no longer has the reason'}"


def mirror_config(document: object) -> object:
    """Return a mirrord.json whose session receives copies only; invalid parts stay unchanged."""
    feature = document.get("feature") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(feature, Mapping):
        return document
    queues = split_queues_of(document)
    changed: object = queues
    if isinstance(queues, Mapping):
        changed = {name: _as_mirror(entry) for name, entry in queues.items()}
    if isinstance(queues, list):
        changed = [_as_mirror(entry) for entry in queues]
    others = {name: value for name, value in feature.items() if name != "copy_target"}  # its effect is in the entries
    return {**document, "feature": {**others, "split_queues": changed}}


def _as_mirror(entry: object) -> object:
    if not isinstance(entry, Mapping):
        return entry
    everything = {"jq_filter": "true"} if entry.get("queue_mode") == Mode.EXCLUSIVE else {}
    return {**entry, **everything, "queue_mode": "mirror"}


def exclusive_config() -> object:
    """Return a mirrord.json whose session takes every message of all queues."""
    return {"feature": {"split_queues": {name: dict(entry) for name, entry in WHOLE_TARGET.items()}}}
