"""The pace of proxies: how often those of a group poll, and the interval after which each is to poll again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from math import log

from signalbox.rendezvous.wire.nat import Nat

# Upstream's proxy accepts any interval from one second (proxy/lib/snowflake.go, MinPollInterval).
SHORTEST_INTERVAL, LONGEST_INTERVAL = timedelta(seconds=1), timedelta(hours=1)
# The interval of the first proxies of a stage, until they are counted.
FIRST_INTERVAL = timedelta(seconds=2)
# A function instance adds its polls to the stored pace this often, and reads it then.
SHARED_EVERY = timedelta(seconds=10)
# Polls are counted for this long before the interval changes.
COUNTED_FOR = timedelta(seconds=30)
# Nearly all proxies have polled again after as many intervals.
KNOWN_AFTER = 2
# The longest wait of a proxy in intervals.
LONGEST_WAIT = 3
# More polls than this multiple of the target are of proxies that ignore `NextPoll`.
TOLERANCE = 2
# A proxy that missed two of its intervals has left.
MISSED_INTERVALS = 3


class ProxyGroup(StrEnum):
    """The proxies that are paced together, by the clients that they can serve."""

    RESTRICTED = "restricted"
    UNRESTRICTED = "unrestricted"


@dataclass(frozen=True, slots=True)
class ProxyKind:
    """The NAT type and the type of a proxy."""

    nat: Nat
    proxy_type: str


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a group: its interval, and the polls by kind that were counted since `since`.

    `polls_per_second` and `known`, the estimated number of proxies, are of the last period that was counted.
    """

    interval: timedelta
    since: datetime
    polled_at: datetime
    polls: Mapping[ProxyKind, int] = field(default_factory=dict)
    polls_per_second: float = 0
    known: Mapping[ProxyKind, int] = field(default_factory=dict)


Paces = Mapping[ProxyGroup, Pace]


def proxy_group(nat: Nat) -> ProxyGroup:
    """Return the group of a proxy."""
    return ProxyGroup.UNRESTRICTED if nat is Nat.UNRESTRICTED else ProxyGroup.RESTRICTED


def first_pace(now: datetime) -> Pace:
    """Return the pace of a group whose first proxy polls."""
    return Pace(FIRST_INTERVAL, since=now, polled_at=now)


def next_pace(pace: Pace, *, now: datetime, target: float) -> Pace | None:
    """Return the pace after a period of counting, or None while it lasts; `target` is in polls a second.

    Proxies that follow it poll once in an interval, so their number is the product of both. The next period begins when
    function instances and nearly all proxies know the new interval.
    """
    if now - pace.since < COUNTED_FOR:
        return None
    # Other instances add the polls of their last seconds too late.
    counted_for = now - pace.since - SHARED_EVERY / 2
    estimated = {kind: number * (pace.interval / counted_for) for kind, number in pace.polls.items()}
    interval = timedelta(seconds=sum(estimated.values()) / target)
    return Pace(
        interval=min(max(interval, SHORTEST_INTERVAL), LONGEST_INTERVAL),
        since=now + max(KNOWN_AFTER * pace.interval, SHARED_EVERY),
        polled_at=pace.polled_at,
        polls_per_second=sum(pace.polls.values()) / counted_for.total_seconds(),
        known={kind: max(round(number), 1) for kind, number in estimated.items()},
    )


def waiting_time(pace: Pace, *, random: float) -> timedelta:
    """Return the time after which one proxy is to poll again; `random` is at least 0 and below 1.

    The times are distributed so that proxies which polled together do not stay together.
    """
    spread = min(-log(1 - random), LONGEST_WAIT)
    return SHORTEST_INTERVAL + (pace.interval - SHORTEST_INTERVAL) * spread


def known_proxies(paces: Paces, *, now: datetime, recency: timedelta) -> Mapping[ProxyKind, int]:
    """Return the estimated number of proxies by kind, of groups that polled lately."""
    present = [pace for pace in paces.values() if is_recent(pace, now=now, recency=recency)]
    # Until a first period was counted, each kind has at least one proxy.
    return {kind: number for pace in present for kind, number in (pace.known or dict.fromkeys(pace.polls, 1)).items()}


def served_share(pace: Pace, *, target: float) -> float:
    """Return the share of polls that are served; the others get «no match» without a look for an offer."""
    return min(1.0, TOLERANCE * target / pace.polls_per_second) if pace.polls_per_second else 1.0


def has_compatible_proxy(paces: Paces, client: Nat, *, now: datetime, recency: timedelta) -> bool:
    """Return whether a proxy that can serve this client polled lately, so that waiting for the next poll makes sense.

    Only unrestricted clients can use every proxy (broker/ipc.go).
    """
    groups = tuple(ProxyGroup) if client is Nat.UNRESTRICTED else (ProxyGroup.UNRESTRICTED,)
    return any(is_recent(paces[group], now=now, recency=recency) for group in groups if group in paces)


def is_recent(pace: Pace, *, now: datetime, recency: timedelta) -> bool:
    """Return whether a proxy of a group polled within `recency`, or within three intervals if that is longer."""
    return now - pace.polled_at <= max(recency, MISSED_INTERVALS * pace.interval)
