"""The status of a session as replies of splitting contain it."""

from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.control.protocol import InvalidControlReply
from signalbox.documents import Problems, Section

REPLY_MARK = "-split-reply"
READY, ENDING = "ready", "ending"


@dataclass(frozen=True, slots=True)
class SessionQueue:
    """A temporary queue of a session, and the original that it replaces."""

    queue_id: str
    original: str
    temporary: str
    url: str


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """A session's status; `document` is the whole reply."""

    session: str
    phase: str
    reason: str | None
    queues: tuple[SessionQueue, ...]
    environment: Mapping[str, str]
    notes: tuple[str, ...]
    document: Mapping[str, object]

    @classmethod
    def parse(cls, value: object) -> "SessionStatus":
        """Return the status in a result. Raises `InvalidControlReply`."""
        problems = Problems()
        section = Section.of(value, "session", problems)
        state = cls(
            session=section.required_text("session"),
            phase=section.required_text("phase"),
            reason=section.text("reason"),
            queues=tuple(map(_queue, section.sections("queues"))),
            environment=section.texts_by_name("environment") or {},
            notes=section.texts("notes"),
            document=section.fields,
        )
        problems.refuse(InvalidControlReply)
        return state

    @property
    def replayed(self) -> int | None:
        """Return the number of kept messages that the session has got so far; None without a replay."""
        replay = self.document.get("replay")
        return int(replay["sent"]) if isinstance(replay, Mapping) else None

    @property
    def has_ended(self) -> bool:
        """Return whether the session will receive no more messages."""
        return self.phase == ENDING


def _queue(section: Section) -> SessionQueue:
    names = ("queue_id", "original", "temporary", "url")
    return SessionQueue(*map(section.required_text, names))
