"""The pace of proxies: how often those of a group poll, and the interval after which each is to poll again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from math import exp, log

from signalbox.rendezvous.wire.nat import Nat

# Upstream's proxy accepts any interval from one second (proxy/lib/snowflake.go, MinPollInterval).
SHORTEST_INTERVAL, LONGEST_INTERVAL = timedelta(seconds=1), timedelta(hours=1)
# The interval of the first proxies of a stage, until they are counted.
FIRST_INTERVAL = timedelta(seconds=2)
# A function instance adds its polls to the stored pace this often, and reads it then.
SHARED_EVERY = timedelta(seconds=10)
# Polls are counted for two intervals before the interval changes, but for so long at least and at most.
COUNTED_INTERVALS, COUNTED_FOR, LONGEST_COUNTED_FOR = 2, timedelta(seconds=30), timedelta(minutes=3)
# The largest factor between an interval and the next one, in both directions.
LARGEST_CHANGE = 2
# Networks are counted in as many groups, by a hash, so that the item of a pace stays below one write unit.
NETWORK_GROUPS = 64
# One network group has this share of the target; if fewer than eight groups poll, one and a half times its even part.
SHARE_OF_NETWORK, SHARE_OF_FEW = 0.2, 1.5
# What the network groups polled before a period counts like this time of it.
REMEMBERED = timedelta(seconds=30)
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
    """The pace of a group: its interval, and the polls that were counted since `since`, by kind and by network group.

    `polls_per_second` and `known`, the estimated number of proxies, are of the last period that was counted.
    `followed` is the mean interval that proxies followed at `since`: most did not know the new one yet.
    """

    interval: timedelta
    since: datetime
    polled_at: datetime
    followed: timedelta
    polls: Mapping[ProxyKind, int] = field(default_factory=dict)
    networks: Mapping[int, int] = field(default_factory=dict)
    polls_per_second: float = 0
    known: Mapping[ProxyKind, int] = field(default_factory=dict)


Paces = Mapping[ProxyGroup, Pace]


def proxy_group(nat: Nat) -> ProxyGroup:
    """Return the group of a proxy."""
    return ProxyGroup.UNRESTRICTED if nat is Nat.UNRESTRICTED else ProxyGroup.RESTRICTED


def first_pace(now: datetime) -> Pace:
    """Return the pace of a group whose first proxy polls."""
    return Pace(FIRST_INTERVAL, since=now, polled_at=now, followed=FIRST_INTERVAL)


def next_pace(pace: Pace, *, now: datetime, target: float) -> Pace | None:
    """Return the pace after a period of counting, or None while it lasts; `target` is in polls a second.

    Proxies that follow an interval poll once in it, so their number is the product of the polls a second and of the
    interval. Polls of a network beyond its share are not counted: a stranger must not slow the others down.
    """
    elapsed = now - pace.since
    if elapsed < min(max(COUNTED_INTERVALS * pace.interval, COUNTED_FOR), LONGEST_COUNTED_FOR):
        return None
    allowed, polled = allowed_polls(pace, now=now, target=target), sum(pace.networks.values())
    counted = sum(min(number, allowed) for number in pace.networks.values()) / polled if polled else 1
    periods = counted * (_followed(pace, elapsed / 2) / elapsed)
    estimated = {kind: number * periods for kind, number in pace.polls.items()}
    interval = timedelta(seconds=sum(estimated.values()) / target)
    interval = min(max(interval, pace.interval / LARGEST_CHANGE), pace.interval * LARGEST_CHANGE)
    remembered = REMEMBERED / (REMEMBERED + elapsed)
    return Pace(
        interval=min(max(interval, SHORTEST_INTERVAL), LONGEST_INTERVAL),
        since=now,
        polled_at=pace.polled_at,
        followed=_followed(pace, elapsed),
        networks={network: kept for network, number in pace.networks.items() if (kept := round(number * remembered))},
        polls_per_second=counted * sum(pace.polls.values()) / elapsed.total_seconds(),
        known={kind: max(round(number), 1) for kind, number in estimated.items()},
    )


def _followed(pace: Pace, after: timedelta) -> timedelta:
    """Return the mean interval that proxies follow some time after `since`.

    Waits are distributed exponentially, so the proxies that did not poll since then decrease exponentially.
    """
    earlier = exp(-(after / pace.followed))
    return pace.interval / (earlier * (pace.interval / pace.followed) + 1 - earlier)


def allowed_polls(pace: Pace, *, now: datetime, target: float) -> float:
    """Return the polls of one network group that may be counted and served, of those in `pace.networks`."""
    share = max(SHARE_OF_NETWORK, SHARE_OF_FEW / max(len(pace.networks), 1))
    return share * target * (max(now - pace.since, timedelta(0)) + REMEMBERED).total_seconds()


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
