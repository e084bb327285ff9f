"""Messages of control queues: the request id, whether to reply, and the command."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.nearest import suggestion

Command = TypeVar("Command")
Commands = Mapping[str, tuple[tuple[str, ...], Callable[[Section], Command]]]
"""A capability's commands by name: the fields of each, and the function that reads them."""

ENVELOPE_FIELDS = ("command", "id", "reply", "after")
MAXIMUM_REQUEST_ID = 200  # a reply and its error both quote the id


class InvalidEnvelope(RejectedError):
    """Raised when a message of a control queue has no valid envelope, so that no reply is possible."""


class InvalidCommand(RejectedError):
    """Raised when the command of a control message is invalid."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A control message: whether its sender waits for a reply, and the fields of its command, which is parsed later.

    The sender does not name the reply queue: it follows from the control queue. `after` is `next` of an earlier reply.
    """

    request_id: str
    wants_reply: bool
    fields: Mapping[str, object]
    after: str = ""
    delivery: CommandDelivery = ONCE

    @classmethod
    def parse(cls, body: str) -> "Envelope":
        """Return the envelope of a message body. Raises `InvalidEnvelope`."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidEnvelope(f"command: not JSON: {error}") from error
        problems = Problems()
        section = Section.of(document, "", problems)
        after = section.text("after") or ""
        envelope = cls(section.required_text("id"), section.flag("reply"), section.fields, after)
        if len(envelope.request_id) > MAXIMUM_REQUEST_ID:
            section.problem(
                "id", f"has {len(envelope.request_id)} characters; at most {MAXIMUM_REQUEST_ID} are allowed"
            )
        problems.refuse(InvalidEnvelope)
        return envelope

    def command(self, commands: Commands[Command]) -> Command:
        """Return the command, one of `commands`. Raises `InvalidCommand` with all problems."""
        problems = Problems()
        section = Section(self.fields, "", problems)
        name = section.required_text("command")
        known = commands.get(name)
        if known is None:
            near = suggestion(name, commands)
            section.problem("command", f"expected one of {', '.join(commands)}, not {shown(name)}{near}")
            raise InvalidCommand("\n".join(problems.found))
        names, read = known
        section.refuse_unknown((*ENVELOPE_FIELDS, *names))
        command = read(section)
        problems.refuse(InvalidCommand)
        return command
