"""The words of the control queue as its clients know them: commands, replies, and the state of a session."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError, UnavailableError

CAPABILITY = "splitting"
REPLY_QUEUE_MARK = "-split-reply-"
REJECTED, UNAVAILABLE = "rejected", "unavailable"
READY, ENDING, GONE = "ready", "ending", "gone"


class CommandRejected(RejectedError):
    """Raised when the stage replies that it will not do what it was asked; the text is its reason, unchanged."""


class CommandUnavailable(UnavailableError):
    """Raised when the stage replies that it could not do it now; the text is its reason, unchanged."""


class InvalidControlReply(RejectedError):
    """Raised when a reply of the stage is not one that this version understands."""


@dataclass(frozen=True, slots=True)
class ControlReply:
    """A reply to one command: its result, or why there is none."""

    request_id: str
    result: object = None
    error: str | None = None
    is_rejection: bool = False

    @classmethod
    def parse(cls, body: str) -> "ControlReply":
        """Return the reply in a message's body. Raises `InvalidControlReply`."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidControlReply(f"a reply is not JSON: {error}") from error
        problems = Problems()
        section = Section.of(document, "reply", problems)
        reply = cls._of(section)
        problems.refuse(InvalidControlReply)
        return reply

    @classmethod
    def _of(cls, section: Section) -> "ControlReply":
        request_id = section.required_text("id")
        if section.flag("ok"):
            return cls(request_id, result=section.fields.get("result"))
        error, code = section.required_text("error"), section.required_text("code")
        if code not in (REJECTED, UNAVAILABLE):
            section.problem("code", f"expected {REJECTED} or {UNAVAILABLE}, not {shown(code)}")
        return cls(request_id, error=error, is_rejection=code == REJECTED)

    def value(self) -> object:
        """Return the result. Raises `CommandRejected` and `CommandUnavailable`."""
        if self.error is None:
            return self.result
        raise CommandRejected(self.error) if self.is_rejection else CommandUnavailable(self.error)


@dataclass(frozen=True, slots=True)
class SessionQueue:
    """A temporary queue of a session, and the queue that it stands in for."""

    queue_id: str
    original: str
    temporary: str
    url: str


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session as the stage tells it; `document` is all that it told. One that ended has the phase `GONE`."""

    session: str
    phase: str
    reason: str | None
    queues: tuple[SessionQueue, ...]
    environment: Mapping[str, str]
    notes: tuple[str, ...]
    document: Mapping[str, object]

    @classmethod
    def parse(cls, value: object) -> "SessionState":
        """Return the state in a result. Raises `InvalidControlReply`."""
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
    def has_ended(self) -> bool:
        """Say whether the session will get no message any more."""
        return self.phase in (ENDING, GONE)


def _queue(section: Section) -> SessionQueue:
    names = ("queue_id", "original", "temporary", "url")
    return SessionQueue(*map(section.required_text, names))


def command_body(command: str, *, request_id: str, reply_queue_url: str, fields: Mapping[str, object]) -> str:
    """Return the body of a command's message."""
    document = {"command": command, "id": request_id, "reply_queue_url": reply_queue_url, **fields}
    return json.dumps(document, separators=(",", ":"))


def stage_of(reply_queue_prefix: str) -> str:
    """Return the stage whose reply queues have names that begin so."""
    return reply_queue_prefix.removesuffix(REPLY_QUEUE_MARK)
