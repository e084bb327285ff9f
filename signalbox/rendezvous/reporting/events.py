"""The history events of rendezvous; they never contain an address or a session description."""

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from signalbox.history.event import HistoryEvent
from signalbox.queues import QueueName
from signalbox.rendezvous.model.states import OfferDelivery, RendezvousMethod, RendezvousRecord, was_matched

if TYPE_CHECKING:
    from signalbox.rendezvous.wire.proxy import ProxyPoll

CAPABILITY = "rendezvous"


def offer(record: RendezvousRecord, outcome: str, *, at: datetime, reason: str | None = None) -> HistoryEvent:
    """Return the event of an offer; `outcome` is `parked`, `denied`, `stale` or `rejected`."""
    size_bytes = len(record.session_description.encode(errors="surrogatepass"))
    return replace(_of_client(record, "offer", outcome, at=at), reason=reason, size_bytes=size_bytes)


def duplicate_offer(delivery: OfferDelivery, *, at: datetime) -> HistoryEvent:
    """Return the event of an offer whose client has the queue of another offer message."""
    event = _of_kind(f"{delivery.message_id}:duplicate", "offer", "duplicate", at=at)
    return replace(event, message_id=delivery.client_id, source=RendezvousMethod.SQS)


def answer(record: RendezvousRecord, *, at: datetime) -> HistoryEvent:
    """Return the event of a delivered answer; its latency counts from the creation of the record."""
    event = _of_ended(record, "answer", "delivered", at=at)
    return replace(event, labels={**event.labels, **_labels(proxy_type=record.proxy_type)})


def timeout(record: RendezvousRecord, *, at: datetime) -> HistoryEvent:
    """Return the event of a client whose patience ended without an answer."""
    reason = "silent proxy" if was_matched(record) else "no proxy"
    return replace(_of_ended(record, "timeout", "expired", at=at), reason=reason)


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
    labels = _labels(
        nat=poll.nat,
        proxy_type=poll.proxy_type,
        country=country,
        relay_pattern="without" if poll.relay_pattern is None else "with",
        clients=str(poll.clients),
        party=client_address_hash,
        client=client_id,
    )
    event = _of_kind(f"{sid_hash}:{at.timestamp():.3f}", "proxy_poll", outcome, at=at)
    return replace(event, message_id=sid_hash, source="proxy", labels=labels)


def proxy_answer(outcome: str, *, at: datetime, sid_hash: str, record: RendezvousRecord | None) -> HistoryEvent:
    """Return the event of a proxy's answer: `success` or `client_gone`."""
    event = _of_kind(f"{sid_hash}:{at.timestamp():.3f}", "proxy_answer", outcome, at=at)
    if record is not None:
        event = replace(event, message_id=record.client_id, labels=_labels(proxy_type=record.proxy_type))
    return replace(event, source="proxy")


def bad_input(source: str, *, at: datetime, request_id: str, reason: str) -> HistoryEvent:
    """Return the event of a request that breaks the protocol; `source` is `proxy`, `answer`, `http` or `ampcache`."""
    event = _of_kind(request_id, "bad_input", "rejected", at=at)
    return replace(event, reason=reason, message_id=request_id, source=source)


def dead_letter(message_id: str, *, at: datetime, reason: str) -> HistoryEvent:
    """Return the event of a message that was moved to the dead-letter queue."""
    event = _of_kind(message_id, "dead_letter", "dead", at=at)
    return replace(event, reason=reason, message_id=message_id, source=RendezvousMethod.SQS)


def queue(name: QueueName, outcome: str, *, at: datetime) -> HistoryEvent:
    """Return the event of a deleted client queue; `outcome` is `deleted` after its lease or `stray_deleted`."""
    return replace(_of_kind(f"{name}:{outcome}", "queue", outcome, at=at), destination=name)


def _of_ended(record: RendezvousRecord, kind: str, outcome: str, *, at: datetime) -> HistoryEvent:
    latency_ms = round((at - record.created_at).total_seconds() * 1000)
    return replace(_of_client(record, kind, outcome, at=at), latency_ms=latency_ms, attempt=record.matches)


def _of_client(record: RendezvousRecord, kind: str, outcome: str, *, at: datetime) -> HistoryEvent:
    event = _of_kind(f"{record.client_id}:{record.message_id or ''}:{outcome}", kind, outcome, at=at)
    labels = _labels(nat=record.nat, country=record.country)
    return replace(event, message_id=record.client_id, source=record.method, labels=labels)


def _of_kind(key: str, kind: str, outcome: str, *, at: datetime) -> HistoryEvent:
    """Return an event; `key` makes its id unique among those of its kind."""
    return HistoryEvent(f"{kind}:{key}", at, CAPABILITY, kind, outcome)


def _labels(**labels: str | None) -> dict[str, str]:
    return {name: str(value) for name, value in labels.items() if value is not None}
