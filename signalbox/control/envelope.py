"""Messages of control queues: the request id, the reply queue and the command."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.queues import InvalidQueueName, QueueName, parse_queue_name

Command = TypeVar("Command")
Commands = Mapping[str, tuple[tuple[str, ...], Callable[[Section], Command]]]
"""A capability's commands by name: the fields of each, and the function that reads them."""

ENVELOPE_FIELDS = ("command", "id", "reply_queue_url")


class InvalidEnvelope(RejectedError):
    """Raised when a message of a control queue has no valid envelope, so that no reply is possible."""


class InvalidCommand(RejectedError):
    """Raised when the command of a control message is invalid."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A control message: its reply address, and the fields of its command, which is parsed later."""

    request_id: str
    reply_queue: QueueName | None
    fields: Mapping[str, object]

    @classmethod
    def parse(cls, body: str, *, reply_prefix: str) -> "Envelope":
        """Return the envelope of a message body. Raises `InvalidEnvelope`."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidEnvelope(f"command: not JSON: {error}") from error
        problems = Problems()
        section = Section.of(document, "", problems)
        envelope = cls(section.required_text("id"), _reply_queue(section, reply_prefix), section.fields)
        problems.refuse(InvalidEnvelope)
        return envelope

    def command(self, commands: Commands[Command]) -> Command:
        """Return the command, one of `commands`. Raises `InvalidCommand` with all problems."""
        problems = Problems()
        section = Section(self.fields, "", problems)
        name = section.required_text("command")
        known = commands.get(name)
        if known is None:
            section.problem("command", f"expected one of {', '.join(commands)}, not {shown(name)}")
            raise InvalidCommand("\n".join(problems.found))
        names, read = known
        section.refuse_unknown((*ENVELOPE_FIELDS, *names))
        command = read(section)
        problems.refuse(InvalidCommand)
        return command


def _reply_queue(section: Section, prefix: str) -> QueueName | None:
    url = section.text("reply_queue_url")
    if url is None:
        return None
    # Only the name is used, in this account: a reply never goes to a queue of another account.
    name = url.rpartition("/")[2]
    try:
        if name.startswith(prefix):
            return parse_queue_name(name)
    except InvalidQueueName as error:
        section.problem("reply_queue_url", str(error))
        return None
    section.problem("reply_queue_url", f"expected a queue whose name begins with {prefix!r}, not {shown(url)}")
    return None
