"""The record of a rendezvous, its states and transitions."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from signalbox.queues import InvalidQueueName, parse_queue_name
from signalbox.rendezvous.wire.nat import Nat

ClientId = NewType("ClientId", str)

# A parked offer is delivered again at least this often, or three times until its deadline if that is less often. Such a
# delivery sends an answer whose function was killed between storing and sending it.
LONGEST_HIDDEN = timedelta(seconds=10)
HIDDEN_PARTS = 3
# A pool with more records than this within the longest patience is busy.
BUSY_RECORDS = 24


class RendezvousMethod(StrEnum):
    """The way in which a client reached the broker; the values are upstream's `rendezvous_method` labels."""

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
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class RendezvousRecord:
    """The record of one rendezvous; its pool, `created_at` and `client_id` identify it.

    `created_at` is when the client sent the offer, and `deadline` the end of its patience. `available_at` is the time
    from which any proxy may claim the offer: when it was sent, or the end of the current match; in an answered one, the
    time of the answer. `sid` and `proxy_type` belong to the newest match, and `matches` counts the matches. `reply` is
    the body for the client, stored before it is sent. `message_id` and `receipt_handle` exist for SQS clients only.
    """

    client_id: ClientId
    method: RendezvousMethod
    created_at: datetime
    available_at: datetime
    deadline: datetime
    state: OfferState = OfferState.PENDING
    nat: Nat = Nat.UNKNOWN
    session_description: str = ""
    relay_url: str = ""
    country: str = "??"
    message_id: str | None = None
    receipt_handle: str | None = None
    sid: str | None = None
    proxy_type: str | None = None
    matches: int = 0
    reply: str | None = None


def offer_pool(client: Nat) -> OfferPool:
    """Return the pool of a client's offer (broker/ipc.go: only unrestricted clients can use every proxy)."""
    return OfferPool.ANY_PROXY if client is Nat.UNRESTRICTED else OfferPool.UNRESTRICTED_PROXY


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


def hidden_until(record: RendezvousRecord, now: datetime) -> datetime:
    """Return the time until which the message of a parked offer is hidden: its deadline, or an earlier check."""
    longest = max(LONGEST_HIDDEN, (record.deadline - record.created_at) / HIDDEN_PARTS)
    return min(record.deadline, now + longest)


def is_claimable(record: RendezvousRecord, *, now: datetime) -> bool:
    """Return whether a proxy may claim this offer at `now`."""
    return record.state in OPEN_STATES and record.available_at <= now < record.deadline


def is_answerable(record: RendezvousRecord, *, sid: str, now: datetime) -> bool:
    """Return whether the proxy session `sid` may still answer this offer."""
    return record.state is OfferState.MATCHED and record.sid == sid and now < record.deadline


def was_matched(record: RendezvousRecord) -> bool:
    """Return whether any proxy was ever matched with this offer."""
    return record.matches > 0
