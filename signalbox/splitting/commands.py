"""Commands to the control plane, as they stand in messages of the control queue."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.queues import InvalidQueueName, QueueName, parse_queue_name
from signalbox.splitting.matching import SessionId
from signalbox.splitting.session_config import QueueId
from signalbox.splitting.target import InvalidTarget, Target

MAXIMUM_SESSION_NAME = 64
MAXIMUM_OWNER_NAME = 128
TAG_CHARACTERS = " +-=._:/@"  # SQS: what the values of tags may have beside letters and digits
ENVELOPE_FIELDS = ("command", "id", "reply_queue_url")


class InvalidEnvelope(RejectedError):
    """Raised when a message of the control queue has nobody to whom what is wrong with it could be told."""


class InvalidCommand(RejectedError):
    """Raised when a message of the control queue is no command."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Store the registries in a file's documents."""

    documents: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ListRegistries:
    """Tell all registries."""


@dataclass(frozen=True, slots=True)
class Discover:
    """Tell which queues a target seems to consume, as a registry."""

    target: Target


@dataclass(frozen=True, slots=True)
class Start:
    """Start a session; `config` is a whole mirrord.json."""

    target: Target
    session_id: SessionId
    owner: str
    config: object


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Give a sign of life of a session."""

    target: Target
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class Stop:
    """End a session."""

    target: Target
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class Status:
    """Tell how the splits are, or that of one target."""

    target: Target | None


@dataclass(frozen=True, slots=True)
class Explain:
    """Tell who of the live sessions would get messages of a queue."""

    target: Target
    queue_id: QueueId
    messages: object


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Move a split forward; `holder` is who has the lock of its target for this message."""

    target: Target
    holder: str


Command = Apply | ListRegistries | Discover | Start | Heartbeat | Stop | Status | Explain | Reconcile


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message of the control queue: who wants a reply, and the command that is still to be read."""

    request_id: str
    reply_queue: QueueName | None
    fields: Mapping[str, object]

    @classmethod
    def parse(cls, body: str, *, reply_prefix: str) -> "Envelope":
        """Return the envelope in a message's body. Raises `InvalidEnvelope`."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidEnvelope(f"command: not JSON: {error}") from error
        problems = Problems()
        section = Section.of(document, "", problems)
        envelope = cls(section.required_text("id"), _reply_queue(section, reply_prefix), section.fields)
        problems.refuse(InvalidEnvelope)
        return envelope

    def command(self) -> Command:
        """Return the command. Raises `InvalidCommand` with all problems."""
        problems = Problems()
        section = Section(self.fields, "", problems)
        name = section.required_text("command")
        known = COMMANDS.get(name)
        if known is None:
            section.problem("command", f"expected one of {', '.join(COMMANDS)}, not {shown(name)}")
            raise InvalidCommand("\n".join(problems.found))
        names, read = known
        section.refuse_unknown((*ENVELOPE_FIELDS, *names))
        command = read(section)
        problems.refuse(InvalidCommand)
        return command


def reconcile_body(command: Reconcile) -> str:
    """Return the message that asks for a round."""
    document = {"command": "reconcile", "id": command.holder, "target": str(command.target), "holder": command.holder}
    return json.dumps(document, separators=(",", ":"))


def _reply_queue(section: Section, prefix: str) -> QueueName | None:
    url = section.text("reply_queue_url")
    if url is None:
        return None
    # Only the name counts, and the queue is looked for in our own account: nobody else's can be written to.
    name = url.rpartition("/")[2]
    try:
        if name.startswith(prefix):
            return parse_queue_name(name)
    except InvalidQueueName as error:
        section.problem("reply_queue_url", str(error))
        return None
    section.problem("reply_queue_url", f"expected a queue whose name begins with {prefix!r}, not {shown(url)}")
    return None


def _apply(section: Section) -> Command:
    documents = section.fields.get("documents")
    if not isinstance(documents, Sequence) or isinstance(documents, str):
        section.problem("documents", f"expected a list of documents, not {shown(documents)}")
        return Apply(())
    return Apply(tuple(documents))


def _start(section: Section) -> Command:
    owner = section.required_text("owner")
    problem = _name_problem(owner, most=MAXIMUM_OWNER_NAME, others=TAG_CHARACTERS)
    if owner and problem:
        section.problem("owner", problem)
    return Start(_target(section), _session(section), owner, section.fields.get("config"))


def _session(section: Section) -> SessionId:
    name = section.required_text("session")
    problem = _name_problem(name, most=MAXIMUM_SESSION_NAME, others="-_.")
    if name and problem:
        section.problem("session", problem)
    return SessionId(name)


def _name_problem(name: str, *, most: int, others: str) -> str | None:
    if len(name) > most:
        return f"has {len(name)} characters; at most {most} are allowed"
    if not all((c.isascii() and c.isalnum()) or c in others for c in name):
        return f"has characters other than letters, digits and {others!r}: {shown(name)}"
    return None


def _target(section: Section) -> Target:
    text = section.required_text("target")
    try:
        return Target.parse(text or NO_TARGET)
    except InvalidTarget as error:
        section.problem("target", str(error))
        return Target.parse(NO_TARGET)


def _status(section: Section) -> Command:
    return Status(None if section.fields.get("target") is None else _target(section))


def _explain(section: Section) -> Command:
    queue_id = QueueId(section.required_text("queue_id"))
    return Explain(_target(section), queue_id, section.fields.get("messages"))


NO_TARGET = "lambda/none"  # stands where one is missing, which is noted as a problem
COMMANDS: dict[str, tuple[tuple[str, ...], Callable[[Section], Command]]] = {
    "apply": (("documents",), _apply),
    "registries": ((), lambda _: ListRegistries()),
    "discover": (("target",), lambda section: Discover(_target(section))),
    "start": (("target", "session", "owner", "config"), _start),
    "heartbeat": (("target", "session"), lambda section: Heartbeat(_target(section), _session(section))),
    "stop": (("target", "session"), lambda section: Stop(_target(section), _session(section))),
    "status": (("target",), _status),
    "explain": (("target", "queue_id", "messages"), _explain),
    "reconcile": (
        ("target", "holder"),
        lambda section: Reconcile(_target(section), section.required_text("holder")),
    ),
}
