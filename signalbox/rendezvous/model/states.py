"""The record of a rendezvous, its states and transitions, and the next step for a delivered offer."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from signalbox.queues import InvalidQueueName, QueueUrl, parse_queue_name
from signalbox.rendezvous.wire.nat import Nat

ClientId = NewType("ClientId", str)
ProxySessionId = NewType("ProxySessionId", str)

# A parked offer is delivered again at least this often, or three times until its deadline if that is less often. Such a
# delivery sends an answer whose function was killed between storing and sending it.
LONGEST_HIDDEN = timedelta(seconds=10)
HIDDEN_PARTS = 3

# An offer that is still open this long after its deadline has lost its message or the function that held its request.
ABANDONED_AFTER = timedelta(seconds=10)


class RendezvousMethod(StrEnum):
    """The way on which a client reached the broker; the values are upstream's `rendezvous_method` labels."""

    SQS = "sqs"
    HTTP = "http"
    AMP = "ampcache"


class OfferState(StrEnum):
    """The states of a rendezvous; `TRANSITIONS` lists the allowed changes."""

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
    """The next step for a delivered offer message."""

    OPEN = "open"
    STAY = "stay"
    EXPIRE = "expire"
    RESEND = "resend"
    DROP = "drop"


class OfferPool(StrEnum):
    """The pools of open offers, by the proxies that their client's NAT type allows."""

    ANY_PROXY = "any"
    UNRESTRICTED_PROXY = "unrestricted"


@dataclass(frozen=True, slots=True)
class OfferDelivery:
    """One receive of an offer message from the broker queue; `is_first` if SQS counts one receive."""

    client_id: ClientId
    message_id: str
    receipt_handle: str
    body: bytes
    sent_at: datetime
    first_received_at: datetime
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Claimant:
    """The proxy that claims an offer."""

    sid: ProxySessionId
    proxy_type: str


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """The record of one rendezvous.

    `available_at` is the time from which any proxy may claim the offer: when it was parked, the end of its reservation,
    or the end of the current match. In a final state it is the end of the lease of the client's queue. `deadline` is
    the end of the client's patience. `reserved_for` is the proxy session of the held poll that the offer reserved.
    `sid` and `proxy_type` belong to the newest match, and `matches` counts the matches. `reply` is the body for the
    client, stored before it is sent. `queue_url`, `message_id` and `receipt_handle` exist for SQS clients only.
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
    """The result of a claim: the matched record, or None; `is_stored` is False if the offer has no record."""

    match: Rendezvous | None
    is_stored: bool


def offer_pool(client: Nat) -> OfferPool:
    """Return the pool of a client's offer (broker/ipc.go: only unrestricted clients can use every proxy)."""
    return OfferPool.ANY_PROXY if client is Nat.UNRESTRICTED else OfferPool.UNRESTRICTED_PROXY


def is_pooled(record: Rendezvous) -> bool:
    """Return whether a new offer is in its pool at once.

    An offer over SQS that is reserved for a held poll is not: the poll nearly always claims it. If it does not, or if
    its proxy stays silent, the offer's message is delivered again three seconds later, which puts it into the pool.
    """
    return record.reserved_for is None or record.method is not RendezvousMethod.SQS


def compatible_pools(proxy: Nat) -> tuple[OfferPool, ...]:
    """Return the pools whose offers a proxy may claim."""
    return tuple(OfferPool) if proxy is Nat.UNRESTRICTED else (OfferPool.ANY_PROXY,)


def parse_client_id(text: str, *, prefix: str) -> ClientId:
    """Return a ClientID that makes a valid queue name after `prefix`. Raises `InvalidQueueName`.

    Source: upstream creates the queue `snowflake-client-<ClientID>` from any value of the message attribute.
    """
    if not text:
        raise InvalidQueueName("ClientID is empty")
    parse_queue_name(prefix + text)
    return ClientId(text)


def next_step(record: Rendezvous | None, delivery: OfferDelivery, *, digest: str, now: datetime) -> OfferStep:
    """Return the next step for a delivered offer, given the stored record of its client."""
    if record is None:
        return OfferStep.OPEN
    if record.state in OPEN_STATES:
        return _step_while_open(record, delivery, now=now)
    if record.message_id == delivery.message_id:
        return OfferStep.RESEND
    # The same client id with another offer is a new rendezvous; with the same offer it is a late duplicate.
    return OfferStep.DROP if record.offer_digest == digest else OfferStep.OPEN


def _step_while_open(record: Rendezvous, delivery: OfferDelivery, *, now: datetime) -> OfferStep:
    if record.message_id != delivery.message_id:
        return OfferStep.DROP
    return OfferStep.EXPIRE if now >= record.deadline else OfferStep.STAY


def hidden_until(record: Rendezvous, now: datetime) -> datetime:
    """Return the time until which the message of a parked offer is hidden: its deadline, or an earlier check."""
    longest = max(LONGEST_HIDDEN, (record.deadline - record.created_at) / HIDDEN_PARTS)
    return min(record.deadline, now + longest)


def is_stale(delivery: OfferDelivery, *, patience: timedelta) -> bool:
    """Return whether an offer waited longer than its client's patience before its first receive.

    Such an offer gets a timeout reply at once instead of being parked; this happens when the queue is full (SQS allows
    120,000 messages in flight). The first receive counts, so a redelivery after a killed function is not stale.
    """
    return delivery.first_received_at - delivery.sent_at >= patience


def is_claimable(record: Rendezvous, *, sid: ProxySessionId, now: datetime) -> bool:
    """Return whether the proxy session `sid` may claim this offer at `now`."""
    if record.state not in OPEN_STATES or now >= record.deadline:
        return False
    return record.available_at <= now or (record.state is OfferState.PENDING and record.reserved_for == sid)


def is_reservation_lost(record: Rendezvous, now: datetime) -> bool:
    """Return whether the held poll, for which an offer is reserved, did not claim it in time."""
    return record.state is OfferState.PENDING and record.reserved_for is not None and record.available_at <= now


def is_answerable(record: Rendezvous, *, sid: ProxySessionId, now: datetime) -> bool:
    """Return whether the proxy session `sid` may still answer this offer."""
    return record.state is OfferState.MATCHED and record.sid == sid and now < record.deadline


def is_abandoned(record: Rendezvous, now: datetime) -> bool:
    """Return whether an offer is still open although its deadline passed `ABANDONED_AFTER` ago."""
    return record.state in OPEN_STATES and now >= record.deadline + ABANDONED_AFTER


def was_matched(record: Rendezvous) -> bool:
    """Return whether any proxy was ever matched with this offer."""
    return record.matches > 0
