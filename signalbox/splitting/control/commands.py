"""Commands to the control plane of splitting, and their form in messages of the control queue."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from signalbox.control.envelope import Commands
from signalbox.documents import Section, shown
from signalbox.kept.settings import LONGEST
from signalbox.queues import QueueName
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.target import Target

MAXIMUM_SESSION_NAME = 64
MAXIMUM_OWNER_NAME = 128
MAXIMUM_MESSAGE_ID = 100  # SQS
DEFAULT_AUDIT_DAYS = 7
MAXIMUM_AUDIT_DAYS = 3653  # no stage keeps its history for longer
RUN_MARK = "#"  # between the random part of a holder and the number of runs before
# A user may send any holder, and Python refuses numbers of many digits.
RUNS_BEFORE = re.compile(rf"{RUN_MARK}([0-9]{{1,9}})\Z")
TAG_CHARACTERS = " +-=._:/@"  # SQS: the characters allowed in tag values in addition to letters and digits


class Command:
    """A command to the control queue of splitting."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Apply(Command):
    """Store the registries in a file's documents."""

    documents: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ListRegistries(Command):
    """List all registries."""


@dataclass(frozen=True, slots=True)
class Remove(Command):
    """Remove a target's registry."""

    target: Target


@dataclass(frozen=True, slots=True)
class Discover(Command):
    """Return a registry of the queues that a target appears to consume."""

    target: Target


@dataclass(frozen=True, slots=True)
class Start(Command):
    """Start a session; `config` is a whole mirrord.json. With `since`, it gets the messages kept in that time first."""

    target: Target
    session_id: SessionId
    owner: str
    config: object
    since: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat(Command):
    """Renew a session."""

    target: Target
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class Stop(Command):
    """End a session."""

    target: Target
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class SplitStatus(Command):
    """Show a summary of all splits, or the split of one target with the counts of its queues."""

    target: Target | None


@dataclass(frozen=True, slots=True)
class Explain(Command):
    """Show which live sessions would receive messages of a queue."""

    target: Target
    queue_id: QueueId
    messages: object


@dataclass(frozen=True, slots=True)
class Audit(Command):
    """Show the events of a message in the last `days` days."""

    message_id: str
    days: int


@dataclass(frozen=True, slots=True)
class Keep(Command):
    """Apply the stored setting of a kept queue to its split, and delete what a removed setting leaves."""

    queue: QueueName


@dataclass(frozen=True, slots=True)
class Reconcile(Command):
    """Reconcile a split; `holder` holds the lock of its target for this message, and is made by `holder_of`."""

    target: Target
    holder: str

    @property
    def runs_before(self) -> int:
        """Return the number of runs of the same chain before this one."""
        found = RUNS_BEFORE.search(self.holder)
        return int(found[1]) if found else 0


def holder_of(random_part: str, *, runs_before: int) -> str:
    """Return the holder of a chain's next run; it carries the number of runs before."""
    return f"{random_part}{RUN_MARK}{runs_before}" if runs_before else random_part


def reconcile_body(command: Reconcile) -> str:
    """Return the message that requests a reconcile run."""
    document = {"command": "reconcile", "id": command.holder, "target": str(command.target), "holder": command.holder}
    return json.dumps(document, separators=(",", ":"))


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
    return Start(_target(section), _session(section), owner, section.fields.get("config"), _since(section))


def _since(section: Section) -> timedelta | None:
    seconds = section.whole_number("since_seconds")
    most = int(LONGEST.total_seconds())
    if seconds is None:
        return None
    if not 1 <= seconds <= most:
        section.problem("since_seconds", f"expected 1 to {most}, not {shown(seconds)}")
        return None
    return timedelta(seconds=seconds)


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
    return section.parsed("target", Target.parse, default=Target.parse(NO_TARGET))


def _status(section: Section) -> Command:
    return SplitStatus(None if section.fields.get("target") is None else _target(section))


def _explain(section: Section) -> Command:
    queue_id = QueueId(section.required_text("queue_id"))
    return Explain(_target(section), queue_id, section.fields.get("messages"))


def _audit(section: Section) -> Command:
    message_id, days = section.required_text("message_id"), section.whole_number("days")
    if len(message_id) > MAXIMUM_MESSAGE_ID:
        section.problem("message_id", f"has {len(message_id)} characters; at most {MAXIMUM_MESSAGE_ID} are allowed")
    if days is None:
        return Audit(message_id, DEFAULT_AUDIT_DAYS)
    if not 1 <= days <= MAXIMUM_AUDIT_DAYS:
        section.problem("days", f"expected 1 to {MAXIMUM_AUDIT_DAYS}, not {days}")
    return Audit(message_id, days)


NO_TARGET = "lambda/none"  # placeholder for a missing target, which is reported as a problem
COMMANDS: Commands[Command] = {
    "apply": (("documents",), _apply),
    "remove": (("target",), lambda section: Remove(_target(section))),
    "registries": ((), lambda _: ListRegistries()),
    "discover": (("target",), lambda section: Discover(_target(section))),
    "start": (("target", "session", "owner", "config", "since_seconds"), _start),
    "heartbeat": (("target", "session"), lambda section: Heartbeat(_target(section), _session(section))),
    "stop": (("target", "session"), lambda section: Stop(_target(section), _session(section))),
    "status": (("target",), _status),
    "explain": (("target", "queue_id", "messages"), _explain),
    "audit": (("message_id", "days"), _audit),
    "keep": (("queue",), lambda section: Keep(QueueName(section.required_text("queue")))),
    "reconcile": (
        ("target", "holder"),
        lambda section: Reconcile(_target(section), section.required_text("holder")),
    ),
}
