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
# Networks are counted in as many groups, by a hash, so that the item of a pace stays below two write units.
NETWORK_GROUPS = 200
# The group of loopback, of the local stage.
LOCAL_GROUP = NETWORK_GROUPS
# A network group counts for as many proxies at most, or for as many times the median of all groups.
PROXIES_OF_GROUP, MEDIANS_OF_GROUP = 8, 2
# All polls, from however few addresses, raise the interval up to this: a stage may have all its proxies behind one
# address, and strangers may poll at will.
CROWD_INTERVAL = timedelta(seconds=30)
# What the network groups polled before a period counts like this time of it.
REMEMBERED = timedelta(seconds=30)
# Rounds what is remembered up in some groups and down in others, in each period in other ones, so that sums stay.
GOLDEN_RATIO = 0.618
# The longest wait of a proxy in intervals.
LONGEST_WAIT = 3
# Polls beyond this multiple of the target are of proxies that ignore `NextPoll`: they are not served.
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
    """The pace of a group: its interval, and its polls since `since`: those that count by kind, all by network group.

    `known`, the estimated number of proxies, is of the last period that was counted.
    `followed` is the mean interval that proxies followed at `since`: most did not know the new one yet.
    """

    interval: timedelta
    since: datetime
    polled_at: datetime
    followed: timedelta
    polls: Mapping[ProxyKind, int] = field(default_factory=dict)
    networks: Mapping[int, int] = field(default_factory=dict)
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
    interval. A network group counts for few proxies more than others: a stranger must not slow the others down. Up to
    `CROWD_INTERVAL` all of its polls count.
    """
    elapsed = now - pace.since
    if elapsed < min(max(COUNTED_INTERVALS * pace.interval, COUNTED_FOR), LONGEST_COUNTED_FOR):
        return None
    most, of_one = counted_polls(pace, now=now), _polls_of_one(pace, elapsed)
    counted = sum(number if group == LOCAL_GROUP else min(number, most) for group, number in pace.networks.items())
    crowd = min(sum(pace.networks.values()) / of_one, CROWD_INTERVAL.total_seconds() * target)
    proxies = max(counted / of_one, crowd)
    interval = timedelta(seconds=proxies / target)
    interval = min(max(interval, pace.interval / LARGEST_CHANGE), pace.interval * LARGEST_CHANGE)
    interval = min(max(interval, SHORTEST_INTERVAL), LONGEST_INTERVAL)
    polls, kept = sum(pace.polls.values()), REMEMBERED / (REMEMBERED + elapsed)
    turn = int(now.timestamp())
    remembered = {
        group: int(number * kept + (group + turn) * GOLDEN_RATIO % 1) for group, number in pace.networks.items()
    }
    return Pace(
        interval=interval,
        since=now,
        polled_at=pace.polled_at,
        followed=_followed(pace, elapsed),
        networks={group: number for group, number in remembered.items() if number},
        known={kind: max(round(proxies * number / polls), 1) for kind, number in pace.polls.items()},
    )


def _followed(pace: Pace, after: timedelta) -> timedelta:
    """Return the mean interval that proxies follow some time after `since`.

    Waits are distributed exponentially, so the proxies that did not poll since then decrease exponentially.
    """
    earlier = exp(-(after / pace.followed))
    return pace.interval / (earlier * (pace.interval / pace.followed) + 1 - earlier)


def _polls_of_one(pace: Pace, elapsed: timedelta) -> float:
    """Return the polls of one proxy that follows the interval, among those in `pace.networks`."""
    return REMEMBERED / pace.followed + elapsed / _followed(pace, elapsed / 2)


def counted_polls(pace: Pace, *, now: datetime) -> float:
    """Return the polls of one network group, of those in `pace.networks`, that count for the interval.

    Less than half of the groups do not change the median.
    """
    elapsed, half = max(now - pace.since, timedelta(0)), NETWORK_GROUPS // 2
    median = sorted(pace.networks.values(), reverse=True)[half] if len(pace.networks) > half else 0
    return max(1, PROXIES_OF_GROUP * _polls_of_one(pace, elapsed), MEDIANS_OF_GROUP * median)


def served_polls(pace: Pace, *, now: datetime, target: float) -> float:
    """Return the polls of one network group, of those in `pace.networks`, that may look for an offer.

    All groups together have `TOLERANCE` times the target, in even parts; what some do not use is for the others.
    """
    room = TOLERANCE * target * (max(now - pace.since, timedelta(0)) + REMEMBERED).total_seconds()
    numbers = sorted(pace.networks.values())
    for place, number in enumerate(numbers):
        if number > room / (len(numbers) - place):
            return room / (len(numbers) - place)
        room -= number
    return room + max(numbers, default=0)


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


def has_compatible_proxy(paces: Paces, client: Nat, *, now: datetime, recency: timedelta) -> bool:
    """Return whether a proxy that can serve this client polled lately, so that waiting for the next poll makes sense.

    Only unrestricted clients can use every proxy (broker/ipc.go).
    """
    groups = tuple(ProxyGroup) if client is Nat.UNRESTRICTED else (ProxyGroup.UNRESTRICTED,)
    return any(is_recent(paces[group], now=now, recency=recency) for group in groups if group in paces)


def is_recent(pace: Pace, *, now: datetime, recency: timedelta) -> bool:
    """Return whether a proxy of a group polled within `recency`, or within three intervals if that is longer."""
    return now - pace.polled_at <= max(recency, MISSED_INTERVALS * pace.interval)
