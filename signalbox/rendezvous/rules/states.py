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


class Method(StrEnum):
    """How a client reached the broker; the values are upstream's `rendezvous_method` labels."""

    SQS = "sqs"
    HTTP = "http"
    AMP = "ampcache"


class State(StrEnum):
    """The states of a rendezvous; `TRANSITIONS` says which may follow which."""

    PENDING = "PENDING"
    MATCHED = "MATCHED"
    ANSWERED = "ANSWERED"
    EXPIRED = "EXPIRED"
    REFUSED = "REFUSED"


TRANSITIONS: dict[State | None, frozenset[State]] = {
    None: frozenset({State.PENDING, State.REFUSED}),
    State.PENDING: frozenset({State.MATCHED, State.EXPIRED}),
    State.MATCHED: frozenset({State.MATCHED, State.ANSWERED, State.EXPIRED}),
    State.ANSWERED: frozenset(),
    State.EXPIRED: frozenset(),
    State.REFUSED: frozenset(),
}
OPEN_STATES = frozenset({State.PENDING, State.MATCHED})


class Step(StrEnum):
    """What a delivery of an offer message calls for."""

    OPEN = "open"
    STAY = "stay"
    EXPIRE = "expire"
    RESEND = "resend"
    DROP = "drop"


class Pool(StrEnum):
    """Where open offers wait, by what their client's NAT asks of a proxy."""

    ANY_PROXY = "any"
    UNRESTRICTED_PROXY = "unrestricted"


@dataclass(frozen=True, slots=True)
class Delivery:
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
    method: Method
    state: State
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
    lent_to: ProxySessionId | None = None
    sid: ProxySessionId | None = None
    proxy_type: str | None = None
    matches: int = 0
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """What came of reaching for an offer: the record of the match, if any, and whether there is a record at all."""

    match: Rendezvous | None
    is_stored: bool


def waiting_pool(client: Nat) -> Pool:
    """Return the pool in which a client's offer waits (broker/ipc.go: only unrestricted clients suit every proxy)."""
    return Pool.ANY_PROXY if client is Nat.UNRESTRICTED else Pool.UNRESTRICTED_PROXY


def fitting_pools(proxy: Nat) -> tuple[Pool, ...]:
    """Return the pools that a proxy may take offers from."""
    return tuple(Pool) if proxy is Nat.UNRESTRICTED else (Pool.ANY_PROXY,)


def parse_client_id(text: str, *, prefix: str) -> ClientId:
    """Return a ClientID whose client queue can exist, or raise `InvalidQueueName`.

    Source: upstream makes the queue `snowflake-client-<ClientID>` from whatever the attribute says.
    """
    if not text:
        raise InvalidQueueName("ClientID is empty")
    parse_queue_name(prefix + text)
    return ClientId(text)


def next_step(record: Rendezvous | None, delivery: Delivery, *, digest: str, now: datetime) -> Step:
    """Return what to do with a delivered offer, given what is on record for its client."""
    if record is None:
        return Step.OPEN
    if record.state in OPEN_STATES:
        return _step_while_open(record, delivery, now=now)
    if record.message_id == delivery.message_id:
        return Step.RESEND
    # The same client id with another offer is a new rendezvous; with the same offer it is a copy of a finished one.
    return Step.DROP if record.offer_digest == digest else Step.OPEN


def _step_while_open(record: Rendezvous, delivery: Delivery, *, now: datetime) -> Step:
    if record.message_id != delivery.message_id:
        return Step.DROP
    return Step.EXPIRE if is_out_of_patience(record, now) else Step.STAY


def is_out_of_patience(record: Rendezvous, now: datetime) -> bool:
    """Say whether a redelivery at `now` is the end of the offer's patience and not an early duplicate."""
    patience = record.deadline - record.created_at
    return now >= record.deadline - patience / TIMEOUT_SHARE


def is_stale(delivery: Delivery, *, patience: timedelta) -> bool:
    """Say whether an offer waited in the queue for longer than its client's patience before anybody took it out.

    This is how patience shrinks when the queue is full (120,000 messages in flight, SQS's limit): what comes late is
    told so at once instead of being parked. What comes again because a function was killed did not come late.
    """
    return delivery.first_received_at - delivery.sent_at >= patience


def is_claimable(record: Rendezvous, *, sid: ProxySessionId, now: datetime) -> bool:
    """Say whether the proxy session `sid` may take this offer now."""
    if record.state not in OPEN_STATES or now >= record.deadline:
        return False
    return record.available_at <= now or (record.state is State.PENDING and record.lent_to == sid)


def is_answerable(record: Rendezvous, *, sid: ProxySessionId, now: datetime) -> bool:
    """Say whether an answer of the proxy session `sid` is still wanted."""
    return record.state is State.MATCHED and record.sid == sid and now < record.deadline


def is_abandoned(record: Rendezvous, now: datetime) -> bool:
    """Say whether an offer is past its patience and nobody came to expire it."""
    return record.state in OPEN_STATES and now >= record.deadline + ABANDONED_AFTER


def was_matched(record: Rendezvous) -> bool:
    """Say whether any proxy has ever been given this offer."""
    return record.matches > 0
