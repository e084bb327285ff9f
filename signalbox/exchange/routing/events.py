"""The history events of routing. They contain nothing of a message's body or headers."""

from dataclasses import replace
from datetime import datetime

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.messages.properties import PUBLISHER
from signalbox.exchange.messages.publications import Publication
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, size_bytes
from signalbox.sarracenia.rights.names import ExchangeName

CAPABILITY = "exchange"
REASON_CHARACTERS = 1_000


def routed(copy: Copy, outcome: str, *, at: datetime) -> HistoryEvent:
    """Return the event of a copy that was `delivered` or will be `retried`; a repetition has the same id."""
    return _of_copy(copy, "routed", outcome, at=at)


def dead_copy(copy: Copy, *, reason: str, at: datetime) -> HistoryEvent:
    """Return the event of a copy in a dead-letter queue."""
    return _of_copy(copy, "dead_letter", "dead", at=at, reason=reason[:REASON_CHARACTERS])


def rejected(message: Message, *, exchange: ExchangeName | None, reason: str, at: datetime) -> HistoryEvent:
    """Return the event of a message that is no publication, or no retryable copy when `exchange` is None.

    The reason quotes names and keys, never the body.
    """
    return HistoryEvent(
        event_id=f"rejected:{message.message_id}:{exchange or 'retries'}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="dead_letter",
        outcome="dead",
        reason=reason[:REASON_CHARACTERS],
        message_id=message.message_id,
        source=exchange,
        size_bytes=size_bytes(message),
    )


def unrouted(
    publication: Publication, outcome: str, *, exchange: ExchangeName, sequence: int | None, at: datetime
) -> HistoryEvent:
    """Return the event of a message that no binding matched: it was `dropped`, or passed to an `alternate`."""
    return _of_publication(publication, "unrouted", outcome, exchange=exchange, sequence=sequence, at=at)


def logged(
    publication: Publication,
    *,
    exchange: ExchangeName,
    sequence: int | None,
    at: datetime,
    publication_id: int | None = None,
) -> HistoryEvent:
    """Return the event of a message in the log of a live exchange, which its connections read by `publication_id`."""
    event = _of_publication(publication, "logged", "live", exchange=exchange, sequence=sequence, at=at)
    known = {} if publication_id is None else {"publication": str(publication_id)}
    return replace(event, labels={**event.labels, **known})


def _of_publication(
    publication: Publication,
    kind: str,
    outcome: str,
    *,
    exchange: ExchangeName,
    sequence: int | None,
    at: datetime,
) -> HistoryEvent:
    message = publication.message
    return HistoryEvent(
        event_id=f"{kind}:{message.message_id}:{exchange}",
        occurred_at=at,
        capability=CAPABILITY,
        kind=kind,
        outcome=outcome,
        message_id=message.message_id,
        topic=publication.properties.key,
        sequence=sequence,
        source=exchange,
        size_bytes=size_bytes(message),
        labels=_labels(publication.publisher) | _file(publication.file),
    )


def _of_copy(copy: Copy, kind: str, outcome: str, *, at: datetime, reason: str | None = None) -> HistoryEvent:
    delivered = {"copy": copy.delivered_as} if copy.delivered_as else {}
    return HistoryEvent(
        event_id=f"{kind}:{copy.message_id}:{copy.destination}:{outcome}",
        occurred_at=at,
        capability=CAPABILITY,
        kind=kind,
        outcome=outcome,
        reason=reason,
        message_id=copy.message_id,
        topic=copy.key,
        sequence=copy.sequence,
        source=copy.exchange,
        destination=copy.queue,
        size_bytes=copy.size_bytes,
        latency_ms=round((at - copy.published_at).total_seconds() * 1000),
        attempt=copy.attempt,
        labels=_labels(copy.message.attributes[PUBLISHER].text) | _file(copy.file) | delivered,
    )


def _labels(publisher: str | None) -> dict[str, str]:
    # The part after the colon is the session name of a role, which may identify a person.
    return {"publisher": publisher.partition(":")[0]} if publisher else {}


def _file(file: str | None) -> dict[str, str]:
    return {"file": file} if file else {}
