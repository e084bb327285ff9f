"""History events of splitting: routing and return of messages and sessions, without bodies or attributes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, MessageId, size_bytes
from signalbox.queues import QueueName
from signalbox.splitting.model.claims import Decision, FilterOutcome, SessionId
from signalbox.splitting.model.split import REASON_BYTES, Split, SplitQueue, SplitSession, shortened
from signalbox.splitting.model.target import Target

CAPABILITY = "splitting"
COPY_REASON_BYTES = 100  # of the verdict of a copy: a message may have many
NO_COPIES: Mapping[QueueName, MessageId] = MappingProxyType({})


def routed(
    message: Message,
    decision: Decision,
    *,
    split: Split,
    queue: SplitQueue,
    at: datetime,
    copies: Mapping[QueueName, MessageId] = NO_COPIES,
) -> tuple[HistoryEvent, ...]:
    """Return the events of a forwarded message: one for its owner and one for each copy.

    Sending the same message to the same queue again yields the same event. `copies` are the ids that the message got
    in the queues.
    """
    return tuple(_routed(message, decision, split, queue, at, copies=copies))


def _routed(
    message: Message,
    decision: Decision,
    split: Split,
    queue: SplitQueue,
    at: datetime,
    *,
    copies: Mapping[QueueName, MessageId],
) -> Iterator[HistoryEvent]:
    gets = {"session" if decision.owner else "deployed": decision.owner}
    destinations = [*gets.items(), *(("copied", session_id) for session_id in decision.copies)]
    for outcome, session_id in destinations:
        unread = {"s3_metadata": decision.unread.value} if decision.unread else {}
        destination = _destination(split, queue, session_id)
        labels = _labels(split, session_id) | _verdict(decision, session_id) | unread | _copy(copies.get(destination))
        yield _of_message(message, "routed", outcome, queue.original, at=at, destination=destination, labels=labels)


def returned(
    message: Message,
    decision: Decision | None,
    *,
    left_by: SessionId | None,
    split: Split,
    queue: SplitQueue,
    at: datetime,
    copy: MessageId | None = None,
) -> HistoryEvent:
    """Return the event of an unconsumed message that was returned; without a decision, to the original.

    `left_by` is the session whose queue held the message, or None for the deployed consumer; the label `heir` is the
    session that received it. The message id is the one in the temporary queue, and `copy` the one in the next queue.
    """
    labels = _labels(split, left_by) | _copy(copy)
    if decision is None:
        return _of_message(
            message, "returned", "original", queue.original, at=at, destination=queue.original, labels=labels
        )
    outcome = "session" if decision.owner else "deployed"
    heir = ({"heir": decision.owner} if decision.owner else {}) | _verdict(decision, decision.owner)
    destination = _destination(split, queue, decision.owner)
    return _of_message(
        message, "returned", outcome, queue.original, at=at, destination=destination, labels=labels | heir
    )


def dead_letter(message: Message, *, target: Target, original: QueueName, reason: str, at: datetime) -> HistoryEvent:
    """Return the event of a message that no queue accepts; `reason` is SQS's and holds nothing of the message."""
    return _of_message(message, "dead_letter", "dead", original, at=at, reason=reason, labels={"target": str(target)})


def replayed(
    message: Message,
    session: SplitSession,
    queue: SplitQueue,
    target: Target,
    *,
    at: datetime,
    copy: MessageId | None = None,
) -> HistoryEvent:
    """Return the event of a kept message of which a session got a copy, with its id in the session's queue."""
    destination = session.queues[queue.original]
    event = _of_replay(
        message, "replayed", session, queue, target, at=at, event_id=f"{message.message_id}:{destination}"
    )
    return replace(event, labels={**event.labels, **_copy(copy)})


def dropped(
    message: Message, session: SplitSession, queue: SplitQueue, target: Target, *, at: datetime
) -> HistoryEvent:
    """Return the event of a replayed copy that its session left; the message id is the one in the temporary queue."""
    return _of_replay(message, "dropped", session, queue, target, at=at, event_id=message.message_id)


def _of_replay(
    message: Message,
    outcome: str,
    session: SplitSession,
    queue: SplitQueue,
    target: Target,
    *,
    at: datetime,
    event_id: str,
) -> HistoryEvent:
    return HistoryEvent(
        event_id=f"kept:{outcome}:{event_id}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="kept",
        outcome=outcome,
        message_id=message.message_id,
        source=queue.original,
        destination=session.queues[queue.original],
        labels={"target": str(target), "session": session.session_id, "owner": session.owner},
    )


def session(found: SplitSession, outcome: str, *, target: Target, at: datetime) -> HistoryEvent:
    """Return the event of a session that `started`, is `ready` or has `ended`; the latency counts from its start."""
    started = round(found.started_at.timestamp() * 1000)
    exclusive = {"exclusive": ",".join(sorted(found.exclusive))} if found.exclusive else {}
    return HistoryEvent(
        event_id=f"session:{target}:{found.session_id}:{started}:{outcome}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="session",
        outcome=outcome,
        reason=found.reason,
        latency_ms=_milliseconds(found.started_at, at),
        labels={"target": str(target), "session": found.session_id, "owner": found.owner, **exclusive},
    )


def _of_message(
    message: Message,
    kind: str,
    outcome: str,
    original: QueueName,
    *,
    at: datetime,
    labels: Mapping[str, str],
    destination: QueueName | None = None,
    reason: str | None = None,
) -> HistoryEvent:
    sent_at = _number(message, "SentTimestamp")
    return HistoryEvent(
        event_id=f"{kind}:{message.message_id}:{destination or original}",
        occurred_at=at,
        capability=CAPABILITY,
        kind=kind,
        outcome=outcome,
        reason=reason,
        message_id=message.message_id,
        source=original,
        destination=destination,
        size_bytes=size_bytes(message),
        latency_ms=None if sent_at is None else round(at.timestamp() * 1000) - sent_at,
        attempt=_number(message, "ApproximateReceiveCount"),
        labels=labels,
    )


def _destination(split: Split, queue: SplitQueue, session_id: SessionId | None) -> QueueName:
    found = split.session(session_id) if session_id else None
    return found.queues[queue.original] if found else queue.deployed


def _labels(split: Split, session_id: SessionId | None) -> dict[str, str]:
    labels = {"target": str(split.target)}
    found = split.session(session_id) if session_id else None
    return labels | ({"session": found.session_id, "owner": found.owner} if found else {})


def _copy(message_id: MessageId | None) -> dict[str, str]:
    return {"copy": message_id} if message_id else {}


def _verdict(decision: Decision, session_id: SessionId | None) -> dict[str, str]:
    """Return the reason for which a session receives a message.

    A filter's reason quotes the filter, never the message; a filter may be long, and each message has its reason.
    """
    matches = [one for one in decision.verdicts if one.session == session_id and one.outcome is FilterOutcome.MATCH]
    most = COPY_REASON_BYTES if session_id in decision.copies else REASON_BYTES
    return {"verdict": shortened(matches[0].reason, most)} if matches else {}


def _number(message: Message, name: str) -> int | None:
    text = message.system_attributes.get(name)
    return int(text) if text else None


def _milliseconds(start: datetime, end: datetime) -> int:
    return round((end - start).total_seconds() * 1000)
