"""Commands and their replies as clients know them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError, UnavailableError

REJECTED, UNAVAILABLE = "rejected", "unavailable"
REPLY_QUEUE_RANDOM_BYTES = 8  # in hexadecimal digits at the end of the name of a client's queue for replies


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


def command_body(command: str, *, request_id: str, reply_queue_url: str, fields: Mapping[str, object]) -> str:
    """Return the body of a command's message."""
    document = {"command": command, "id": request_id, "reply_queue_url": reply_queue_url, **fields}
    return json.dumps(document, separators=(",", ":"))
