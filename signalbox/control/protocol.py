"""The client side of the control protocol: command bodies and replies."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError, UnavailableError

REJECTED, UNAVAILABLE = "rejected", "unavailable"
# No client waits longer for a reply, and a reply that its client does not fetch is in the way of those for others.
REPLY_RETENTION = timedelta(seconds=60)
# The clients of a user share a reply queue. A reply that a client holds for another reappears after this time.
REPLY_VISIBILITY = timedelta(seconds=2)


class CommandRejected(RejectedError):
    """Raised when the stage rejects a command; the text is the stage's reason."""


class CommandUnavailable(UnavailableError):
    """Raised when the stage cannot execute a command now; the text is the stage's reason."""


class InvalidControlReply(RejectedError):
    """Raised when this version cannot parse a reply of the stage."""


@dataclass(frozen=True, slots=True)
class ControlReply:
    """A reply to one command: its result, or its error; `next` is the field `after` for the rest of a list."""

    request_id: str
    result: object = None
    error: str | None = None
    is_rejection: bool = False
    next: str | None = None

    @classmethod
    def parse(cls, body: str) -> "ControlReply":
        """Return the reply of a message body. Raises `InvalidControlReply`."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidControlReply(f"a reply is not JSON: {error}") from error
        problems = Problems()
        section = Section.of(document, "reply", problems)
        reply = cls._of(section)
        problems.refuse(InvalidControlReply)
        return reply

    @staticmethod
    def id_of(body: str) -> str | None:
        """Return the id of the command that a message body replies to, or None if the body is no reply."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return None
        found = document.get("id") if isinstance(document, dict) else None
        return found if isinstance(found, str) else None

    @classmethod
    def _of(cls, section: Section) -> "ControlReply":
        request_id = section.required_text("id")
        if section.flag("ok"):
            return cls(request_id, result=section.fields.get("result"), next=section.text("next"))
        error, code = section.required_text("error"), section.required_text("code")
        if code not in (REJECTED, UNAVAILABLE):
            section.problem("code", f"expected {REJECTED} or {UNAVAILABLE}, not {shown(code)}")
        return cls(request_id, error=error, is_rejection=code == REJECTED)

    def value(self) -> object:
        """Return the result. Raises `CommandRejected` and `CommandUnavailable`."""
        if self.error is None:
            return self.result
        raise CommandRejected(self.error) if self.is_rejection else CommandUnavailable(self.error)


def command_body(command: str, *, request_id: str, fields: Mapping[str, object]) -> str:
    """Return the message body of a command that is answered."""
    document = {"command": command, "id": request_id, "reply": True, **fields}
    return json.dumps(document, separators=(",", ":"))
