"""The history events of rendezvous; they never contain an address or a session description."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from signalbox.history.event import HistoryEvent
from signalbox.queues import QueueName
from signalbox.rendezvous.model.states import OfferDelivery, RendezvousRecord, was_matched

if TYPE_CHECKING:
    from signalbox.rendezvous.wire.proxy import ProxyPoll

CAPABILITY = "rendezvous"


def offer(record: RendezvousRecord, outcome: str, *, at: datetime, reason: str | None = None) -> HistoryEvent:
    """Return the event of an offer; `outcome` is `parked`, `denied`, `stale` or `rejected`."""
    return _of_client(
        record,
        "offer",
        outcome,
        at=at,
        reason=reason,
        size_bytes=len(record.session_description.encode(errors="surrogatepass")),
    )


def duplicate_offer(record: RendezvousRecord, delivery: OfferDelivery, *, at: datetime) -> HistoryEvent:
    """Return the event of a duplicate of a stored offer."""
    return HistoryEvent(
        event_id=f"offer:{delivery.message_id}:duplicate",
        occurred_at=at,
        capability=CAPABILITY,
        kind="offer",
        outcome="duplicate",
        message_id=record.client_id,
        source=record.method,
    )


def answer(record: RendezvousRecord, *, at: datetime) -> HistoryEvent:
    """Return the event of a delivered answer; its latency counts from the creation of the record."""
    labels = {"proxy_type": record.proxy_type} if record.proxy_type else {}
    return _of_client(
        record,
        "answer",
        "delivered",
        at=at,
        latency_ms=_milliseconds_since(record.created_at, at),
        attempt=record.matches,
        labels=labels,
    )


def timeout(record: RendezvousRecord, *, at: datetime) -> HistoryEvent:
    """Return the event of a client whose patience ended without an answer."""
    reason = "silent proxy" if was_matched(record) else "no proxy"
    latency_ms = _milliseconds_since(record.created_at, at)
    return _of_client(record, "timeout", "expired", at=at, reason=reason, latency_ms=latency_ms, attempt=record.matches)


def proxy_poll(
    poll: "ProxyPoll",
    outcome: str,
    *,
    at: datetime,
    sid_hash: str,
    client_address_hash: str | None,
    country: str,
    client_id: str | None = None,
) -> HistoryEvent:
    """Return the event of a poll; `client_address_hash` and `sid_hash` are hashed with the key of that day.

    `client_id` is the client of the offer that the proxy got.
    """
    labels = {
        "nat": str(poll.nat),
        "proxy_type": poll.proxy_type,
        "country": country,
        "relay_pattern": "without" if poll.relay_pattern is None else "with",
        "clients": str(poll.clients),
    }
    return HistoryEvent(
        event_id=f"proxy_poll:{sid_hash}:{at.timestamp():.3f}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="proxy_poll",
        outcome=outcome,
        message_id=sid_hash,
        source="proxy",
        labels=labels
        | ({"party": client_address_hash} if client_address_hash else {})
        | ({"client": client_id} if client_id else {}),
    )


def proxy_answer(outcome: str, *, at: datetime, sid_hash: str, record: RendezvousRecord | None) -> HistoryEvent:
    """Return the event of a proxy's answer: `success` or `client_gone`."""
    return HistoryEvent(
        event_id=f"proxy_answer:{sid_hash}:{at.timestamp():.3f}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="proxy_answer",
        outcome=outcome,
        message_id=record.client_id if record else None,
        source="proxy",
        labels={"proxy_type": record.proxy_type} if record and record.proxy_type else {},
    )


def bad_input(source: str, *, at: datetime, request_id: str, reason: str) -> HistoryEvent:
    """Return the event of a request that breaks the protocol; `source` is `proxy`, `answer`, `http` or `ampcache`."""
    return HistoryEvent(
        event_id=f"bad_input:{request_id}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="bad_input",
        outcome="rejected",
        reason=reason,
        message_id=request_id,
        source=source,
    )


def dead_letter(message_id: str, *, at: datetime, reason: str) -> HistoryEvent:
    """Return the event of a message that was moved to the dead-letter queue."""
    return HistoryEvent(
        event_id=f"dead_letter:{message_id}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="dead_letter",
        outcome="dead",
        reason=reason,
        message_id=message_id,
        source="sqs",
    )


def queue(name: QueueName, outcome: str, *, at: datetime) -> HistoryEvent:
    """Return the event of a deleted client queue; `outcome` is `deleted` after its lease or `stray_deleted`."""
    return HistoryEvent(
        event_id=f"queue:{name}:{outcome}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="queue",
        outcome=outcome,
        destination=name,
    )


def _of_client(
    record: RendezvousRecord,
    kind: str,
    outcome: str,
    *,
    at: datetime,
    reason: str | None = None,
    size_bytes: int | None = None,
    latency_ms: int | None = None,
    attempt: int | None = None,
    labels: Mapping[str, str] | None = None,
) -> HistoryEvent:
    return HistoryEvent(
        event_id=f"{kind}:{record.client_id}:{record.message_id or ''}:{outcome}",
        occurred_at=at,
        capability=CAPABILITY,
        kind=kind,
        outcome=outcome,
        reason=reason,
        message_id=record.client_id,
        source=record.method,
        size_bytes=size_bytes,
        latency_ms=latency_ms,
        attempt=attempt,
        labels={"nat": str(record.nat), "country": record.country} | dict(labels or {}),
    )


def _milliseconds_since(start: datetime, end: datetime) -> int:
    return round((end - start).total_seconds() * 1000)
