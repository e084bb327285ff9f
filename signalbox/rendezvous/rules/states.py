"""The life of one rendezvous: its record, its states, and what a delivery of its offer calls for."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from signalbox.queues import InvalidQueueName, QueueUrl, parse_queue_name
from signalbox.rendezvous.wire.nat import Nat

ClientId = NewType("ClientId", str)
ProxySessionId = NewType("ProxySessionId", str)

# A redelivery comes at the earliest when the visibility of the first receive ends. The record is written a little
# later than that receive, by at most the function's time-out, which is this share of the patience (SQS asks for it).
TIMEOUT_SHARE = 6

# An offer whose patience ended this long ago and that nobody expired has lost its message or its waiting process.
ABANDONED_AFTER = timedelta(seconds=10)


class RendezvousMethod(StrEnum):
    """How a client reached the broker; the values are upstream's `rendezvous_method` labels."""

    SQS = "sqs"
    HTTP = "http"
    AMP = "ampcache"


class OfferState(StrEnum):
    """The states of a rendezvous; `TRANSITIONS` says which may follow which."""

    PENDING = "PENDING"
    MATCHED = "MATCHED"
    ANSWERED = "ANSWERED"
    EXPIRED = "EXPIRED"
    REFUSED = "REFUSED"


TRANSITIONS: dict[OfferState | None, frozenset[OfferState]] = {
    None: frozenset({OfferState.PENDING, OfferState.REFUSED}),
    OfferState.PENDING: frozenset({OfferState.MATCHED, OfferState.EXPIRED}),
    OfferState.MATCHED: frozenset({OfferState.MATCHED, OfferState.ANSWERED, OfferState.EXPIRED}),
    OfferState.ANSWERED: frozenset(),
    OfferState.EXPIRED: frozenset(),
    OfferState.REFUSED: frozenset(),
}
OPEN_STATES = frozenset({OfferState.PENDING, OfferState.MATCHED})


class OfferStep(StrEnum):
    """What a delivery of an offer message calls for."""

    OPEN = "open"
    STAY = "stay"
    EXPIRE = "expire"
    RESEND = "resend"
    DROP = "drop"


class OfferPool(StrEnum):
    """Where open offers wait, by what their client's NAT asks of a proxy."""

    ANY_PROXY = "any"
    UNRESTRICTED_PROXY = "unrestricted"


@dataclass(frozen=True, slots=True)
class OfferDelivery:
    """One receive of an offer message from the broker queue; the first of it, as far as SQS knows, if `is_first`."""

    client_id: ClientId
    message_id: str
    receipt_handle: str
    body: bytes
    sent_at: datetime
    first_received_at: datetime
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Claimant:
    """The proxy that wants an offer."""

    sid: ProxySessionId
    proxy_type: str


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """The record of one rendezvous.

    `available_at` is when a proxy may claim the offer: the moment it was parked, or the end of the current match's
    lease. `deadline` is the end of the client's patience. `lent_to` names the held poll that the offer was shown to
    first; `sid` and `proxy_type` are those of the newest match. `reply` is the body for the client, stored before it
    is sent. `queue_url`, `message_id` and `receipt_handle` exist for SQS clients only.
    """

    client_id: ClientId
    method: RendezvousMethod
    state: OfferState
    created_at: datetime
    available_at: datetime
    deadline: datetime
    nat: Nat = Nat.UNKNOWN
    session_description: str = ""
    relay_url: str = ""
    country: str = "??"
    offer_digest: str = ""
    message_id: str | None = None
    receipt_handle: str | None = None
    queue_url: QueueUrl | None = None
    reserved_for: ProxySessionId | None = None
    sid: ProxySessionId | None = None
    proxy_type: str | None = None
    matches: int = 0
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """What came of reaching for an offer: the record of the match, if any, and whether there is a record at all."""

    match: Rendezvous | None
    is_stored: bool


def offer_pool(client: Nat) -> OfferPool:
    """Return the pool in which a client's offer waits (broker/ipc.go: only unrestricted clients suit every proxy)."""
    return OfferPool.ANY_PROXY if client is Nat.UNRESTRICTED else OfferPool.UNRESTRICTED_PROXY


def compatible_pools(proxy: Nat) -> tuple[OfferPool, ...]:
    """Return the pools that a proxy may take offers from."""
    return tuple(OfferPool) if proxy is Nat.UNRESTRICTED else (OfferPool.ANY_PROXY,)


def parse_client_id(text: str, *, prefix: str) -> ClientId:
    """Return a ClientID whose client queue can exist, or raise `InvalidQueueName`.

    Source: upstream makes the queue `snowflake-client-<ClientID>` from whatever the attribute says.
    """
    if not text:
        raise InvalidQueueName("ClientID is empty")
    parse_queue_name(prefix + text)
    return ClientId(text)


def next_step(record: Rendezvous | None, delivery: OfferDelivery, *, digest: str, now: datetime) -> OfferStep:
    """Return what to do with a delivered offer, given what is on record for its client."""
    if record is None:
        return OfferStep.OPEN
    if record.state in OPEN_STATES:
        return _step_while_open(record, delivery, now=now)
    if record.message_id == delivery.message_id:
        return OfferStep.RESEND
    # The same client id with another offer is a new rendezvous; with the same offer it is a copy of a finished one.
    return OfferStep.DROP if record.offer_digest == digest else OfferStep.OPEN


def _step_while_open(record: Rendezvous, delivery: OfferDelivery, *, now: datetime) -> OfferStep:
    if record.message_id != delivery.message_id:
        return OfferStep.DROP
    return OfferStep.EXPIRE if is_patience_over(record, now) else OfferStep.STAY


def is_patience_over(record: Rendezvous, now: datetime) -> bool:
    """Say whether a redelivery at `now` is the end of the offer's patience and not an early duplicate."""
    patience = record.deadline - record.created_at
    return now >= record.deadline - patience / TIMEOUT_SHARE


def is_stale(delivery: OfferDelivery, *, patience: timedelta) -> bool:
    """Say whether an offer waited in the queue for longer than its client's patience before anybody took it out.

    This is how patience shrinks when the queue is full (120,000 messages in flight, SQS's limit): what comes late is
    told so at once instead of being parked. What comes again because a function was killed did not come late.
    """
    return delivery.first_received_at - delivery.sent_at >= patience


def is_claimable(record: Rendezvous, *, sid: ProxySessionId, now: datetime) -> bool:
    """Say whether the proxy session `sid` may take this offer now."""
    if record.state not in OPEN_STATES or now >= record.deadline:
        return False
    return record.available_at <= now or (record.state is OfferState.PENDING and record.reserved_for == sid)


def is_answerable(record: Rendezvous, *, sid: ProxySessionId, now: datetime) -> bool:
    """Say whether an answer of the proxy session `sid` is still wanted."""
    return record.state is OfferState.MATCHED and record.sid == sid and now < record.deadline


def is_abandoned(record: Rendezvous, now: datetime) -> bool:
    """Say whether an offer is past its patience and nobody came to expire it."""
    return record.state in OPEN_STATES and now >= record.deadline + ABANDONED_AFTER


def was_matched(record: Rendezvous) -> bool:
    """Say whether any proxy has ever been given this offer."""
    return record.matches > 0
