"""The paces of the groups of proxies, in the table `Rendezvous`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment
from signalbox.aws.shared.expressions import Item, Put, Update, attr
from signalbox.rendezvous.model.pace import Pace, Paces, ProxyGroup, ProxyKind, first_pace
from signalbox.rendezvous.wire.nat import Nat

PARTITION = "pace"
# The attributes of the numbers by kind of proxy, `polls|restricted|webext`, and by network group, `n|17`.
POLLS, KNOWN, NETWORKS, SEPARATOR = "polls", "known", "n", "|"
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class DynamoPaces:
    """`ProxyPaces`: an item for each group, to which function instances add their polls with one write."""

    table: DynamoTable

    def all(self) -> Paces:
        """Return the pace of each group; groups that never polled are missing."""
        found = self.table.query(attr("pk").eq(PARTITION), is_consistent=False)
        return {ProxyGroup(item["sk"]): _pace(item) for item in found}

    def add(
        self, group: ProxyGroup, polls: Mapping[ProxyKind, int], *, networks: Mapping[int, int], now: datetime
    ) -> Pace:
        """Add polls, and the same by network group, to a group and return its pace; the first poll makes it."""
        since, interval = attr("since"), attr("interval")
        update = Update(
            _key(group),
            sets={
                "polled_at": milliseconds(now),
                "since": since.otherwise(milliseconds(now)),
                "interval": interval.otherwise(first_pace(now).interval // MILLISECOND),
            },
            adds=_kinds(POLLS, polls) | _networks(networks),
        )
        return _pace(self.table.written(update) or {})

    def replace(self, group: ProxyGroup, pace: Pace, *, replaced: Pace) -> bool:
        """Store a new pace and return True, or return False if another instance replaced `replaced` before."""
        item = _key(group) | {
            "interval": pace.interval // MILLISECOND,
            "since": milliseconds(pace.since),
            "polled_at": milliseconds(pace.polled_at),
            "followed": pace.followed // MILLISECOND,
        }
        item |= _kinds(KNOWN, pace.known) | _networks(pace.networks)
        return self.table.write(Put(item, attr("since").eq(milliseconds(replaced.since))))


def _key(group: ProxyGroup) -> Item:
    return {"pk": PARTITION, "sk": group}


def _kinds(what: str, numbers: Mapping[ProxyKind, int]) -> dict[str, int]:
    return {SEPARATOR.join((what, kind.nat, kind.proxy_type)): number for kind, number in numbers.items()}


def _networks(numbers: Mapping[int, int]) -> dict[str, int]:
    return {f"{NETWORKS}{SEPARATOR}{network}": number for network, number in numbers.items()}


def _pace(item: Item) -> Pace:
    return Pace(
        interval=int(item["interval"]) * MILLISECOND,
        since=moment(item["since"]),
        polled_at=moment(item["polled_at"]),
        followed=int(item.get("followed") or item["interval"]) * MILLISECOND,
        polls=_by_kind(item, POLLS),
        networks={int(network): number for (network,), number in _numbers(item, NETWORKS)},
        known=_by_kind(item, KNOWN),
    )


def _by_kind(item: Item, what: str) -> Mapping[ProxyKind, int]:
    return {ProxyKind(Nat(nat), proxy_type): number for (nat, proxy_type), number in _numbers(item, what)}


def _numbers(item: Item, what: str) -> Iterator[tuple[list[str], int]]:
    for name, number in item.items():
        kind, *rest = name.split(SEPARATOR)
        if kind == what:
            yield rest, int(number)
