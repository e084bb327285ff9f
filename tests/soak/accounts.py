"""Accounts of messages: what of everything that was sent is lost, repeated, out of order or late."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

LATE_SECONDS = 120.0
EXAMPLES = 5
REASONS = ("Reason", "reason")
LONGEST_REASON = 80


class Stamp(NamedTuple):
    """A message: its number within a stream, in which messages are sent in the order of their numbers."""

    stream: str
    number: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message at one receiver; `at` is in seconds since 1970. `is_again` marks one that SQS delivers again."""

    stamp: Stamp
    receiver: str
    at: float
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message of a dead-letter queue, with its text attributes."""

    queue: str
    body: str
    attributes: Mapping[str, str]

    @property
    def reason(self) -> str:
        """Return the reason, which SQS's own redrive does not give."""
        texts = (self.attributes[name] for name in REASONS if name in self.attributes)
        return next(texts, "no reason: received too often")[:LONGEST_REASON]


class Outage(NamedTuple):
    """The time in which a service was away, in seconds since 1970."""

    service: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Account:
    """The messages of one kind. Standard queues may repeat messages, and promise no order."""

    kind: str
    is_ordered: bool
    sent: int = 0
    received: int = 0
    """Distinct messages."""
    dead: int = 0
    """Messages that arrived in a dead-letter queue only."""
    lost: int = 0
    repeated: int = 0
    """Further copies of messages that had arrived."""
    out_of_order: int = 0
    """Messages that arrived first after a later one of their stream, at the same receiver; 0 without a promise."""
    late: Counter[str] = field(default_factory=Counter)
    """Messages that arrived more than two minutes after they were sent, or after the last outage on their way, by its
    service, which is empty without an outage."""
    slowest_seconds: float = 0.0
    newest: float = 0.0
    """When the last message arrived first, in seconds since 1970; 0 without one."""
    examples: tuple[str, ...] = ()
    receivers: int = 1
    """Each of them must get every message, and the figures are sums over them."""

    @property
    def is_kept(self) -> bool:
        """Return whether the promise is kept: nothing is lost or a dead letter, and nothing out of order."""
        return not (self.lost or self.dead or self.out_of_order)

    def plus(self, other: "Account") -> "Account":
        """Return the account of both."""
        summed = {one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)[2:]}
        changed = {
            "slowest_seconds": max(self.slowest_seconds, other.slowest_seconds),
            "newest": max(self.newest, other.newest),
            "examples": summed["examples"][:EXAMPLES],
            "receivers": self.receivers,
        }
        return replace(self, **{**summed, **changed})


def account(
    kind: str,
    sent: Mapping[Stamp, float],
    arrivals: Iterable[Arrival],
    *,
    is_ordered: bool,
    dead: Collection[Stamp] = (),
    outages: Sequence[Outage] = (),
) -> Account:
    """Return the account of sent messages, by the time of sending, of their arrivals in order, and of dead letters."""
    first: dict[Stamp, float] = {}
    newest: dict[tuple[str, str], int] = {}
    counts: Counter[str] = Counter()
    examples: list[str] = []
    for one in arrivals:
        if one.stamp in first:
            counts["repeated"] += not one.is_again
            continue
        first[one.stamp] = one.at
        place = one.receiver, one.stamp.stream
        if is_ordered and newest.get(place, -1) > one.stamp.number:
            counts["out of order"] += 1
            examples.append(f"{one.stamp} after {newest[place]} at {one.receiver}")
        newest[place] = max(newest.get(place, -1), one.stamp.number)
    missing = sent.keys() - first.keys()
    lost, died = sorted(missing - set(dead)), sorted(missing & set(dead))
    waits = [_wait(at, first[stamp], outages) for stamp, at in sent.items() if stamp in first]
    late = Counter(service for seconds, service in waits if seconds > LATE_SECONDS)
    return Account(
        kind=kind,
        is_ordered=is_ordered,
        sent=len(sent),
        received=len(sent.keys() & first.keys()),
        dead=len(died),
        lost=len(lost),
        repeated=counts["repeated"],
        out_of_order=counts["out of order"],
        late=late,
        slowest_seconds=round(max((seconds for seconds, _ in waits), default=0.0), 1),
        newest=max(first.values(), default=0.0),
        examples=(
            *(f"{stamp} is lost" for stamp in lost),
            *(f"{stamp} is a dead letter" for stamp in died),
            *examples,
        )[:EXAMPLES],
    )


def _wait(sent: float, arrived: float, outages: Sequence[Outage]) -> tuple[float, str]:
    """Return the seconds until the arrival since the sending, or since the end of the last outage in between."""
    ends = [(outage.end, outage.service) for outage in outages if outage.begin < arrived and outage.end > sent]
    since, service = max([(sent, ""), *ends])
    return max(0.0, arrived - since), service
