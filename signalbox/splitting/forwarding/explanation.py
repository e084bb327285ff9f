"""Explanation of routing decisions, for sessions and messages that are read from files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.messages import Message, NotAMessage
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.model.claims import DEPLOYED, Claim, Decision, FilterOutcome, SessionId
from signalbox.splitting.model.filters import Compiler
from signalbox.splitting.model.s3_objects import BatchMetadata
from signalbox.splitting.model.session_config import (
    SQS,
    InvalidSessionConfig,
    QueueId,
    SessionConfig,
    read_split_queues,
)


class InvalidMessages(RejectedError):
    """Raised when a document is not a list of SQS messages."""


@dataclass(frozen=True, slots=True)
class DescribedSession:
    """A session that a file describes."""

    session_id: SessionId
    config: SessionConfig


def parse_sessions(document: object, compiler: Compiler) -> tuple[DescribedSession, ...]:
    """Return the sessions in `[{"session": …, "queues": {id: filter}}]`, in order of start.

    Raises `InvalidSessionConfig` with all problems. The `queue_type` of a filter defaults to SQS.
    """
    problems = Problems()
    sessions = [_session(section, compiler) for section in _objects(document, problems)]
    names = [session.session_id for session in sessions]
    for number, name in enumerate(names):
        if name in names[:number]:
            problems.add(f"sessions[{number}].session", f"{name!r} is listed twice")
        if name == DEPLOYED:
            problems.add(f"sessions[{number}].session", f"{DEPLOYED!r} is the name of the deployed consumer")
    problems.refuse(InvalidSessionConfig)
    return tuple(sessions)


def parse_messages(document: object) -> tuple[Message, ...]:
    """Return the messages in a list of SQS `Message` objects or in the output of `aws sqs receive-message`.

    Raises `InvalidMessages` with all problems.
    """
    found = document.get("Messages") if isinstance(document, Mapping) else document
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise InvalidMessages(f"messages: expected a list of SQS Message objects, not {shown(document)}")
    messages = []
    problems = []
    for number, value in enumerate(found):
        try:
            messages.append(Message.parse(value, path=f"messages[{number}]"))
        except NotAMessage as error:
            problems.append(str(error))
    if problems:
        raise InvalidMessages("\n".join(problems))
    return tuple(messages)


def explained(
    messages: Sequence[Message],
    sessions: Sequence[DescribedSession],
    queue_id: QueueId,
    *,
    sns: bool,
    s3_event: bool = False,
    budget: FilterBudget | None = None,
) -> Iterator[Decision]:
    """Yield the decision on each message, with the verdict of every session; no metadata of S3 objects is read."""
    claims: list[Claim] = [session.config.claim(session.session_id, queue_id) for session in sessions]
    metadata = BatchMetadata(messages, sns) if s3_event else None
    for message in messages:
        yield decide(message, claims, sns=sns, metadata=metadata, ask_all=True, budget=budget)


def as_document(number: int, decision: Decision) -> dict[str, object]:
    """Return the JSON document of a decision; `number` is the message's position."""
    verdicts = [
        {
            "session": verdict.session,
            "mode": verdict.mode,
            "matches": verdict.outcome is FilterOutcome.MATCH,
            "outcome": verdict.outcome,
            "reason": verdict.reason,
        }
        for verdict in decision.verdicts
    ]
    owner = decision.owner or DEPLOYED
    return {"message": number, "owner": owner, "copies": list(decision.copies), "verdicts": verdicts}


def _objects(document: object, problems: Problems) -> Iterator[Section]:
    if not isinstance(document, Sequence) or isinstance(document, str):
        problems.add("sessions", f"expected a list of sessions, not {shown(document)}")
        return
    for number, value in enumerate(document):
        yield Section.of(value, f"sessions[{number}]", problems)


def _session(section: Section, compiler: Compiler) -> DescribedSession:
    section.refuse_unknown(("session", "queues"))
    name = SessionId(section.required_text("session"))
    config = read_split_queues(
        section.fields.get("queues"),
        compiler,
        path=section.at("queues"),
        problems=section.problems,
        default_type=SQS,
    )
    return DescribedSession(name, config)
