"""The paces of the groups of proxies, in the table `Rendezvous`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment
from signalbox.aws.shared.expressions import Item, Put, Update, attr
from signalbox.rendezvous.model.pace import Pace, Paces, ProxyGroup, ProxyKind, first_pace
from signalbox.rendezvous.wire.nat import Nat

PARTITION = "pace"
# The attributes of the numbers by kind of proxy: `polls|restricted|webext`.
POLLS, KNOWN, SEPARATOR = "polls", "known", "|"
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class DynamoPaces:
    """`ProxyPaces`: an item for each group, to which function instances add their polls with one write."""

    table: DynamoTable

    def all(self) -> Paces:
        """Return the pace of each group; groups that never polled are missing."""
        return {ProxyGroup(item["sk"]): _pace(item) for item in self.table.query(attr("pk").eq(PARTITION))}

    def add(self, group: ProxyGroup, polls: Mapping[ProxyKind, int], *, now: datetime) -> Pace:
        """Add polls to a group and return its pace; the first poll of a group makes it."""
        since, interval = attr("since"), attr("interval")
        update = Update(
            _key(group),
            sets={
                "polled_at": milliseconds(now),
                "since": since.otherwise(milliseconds(now)),
                "interval": interval.otherwise(first_pace(now).interval // MILLISECOND),
            },
            adds={_name(POLLS, kind): number for kind, number in polls.items()},
        )
        return _pace(self.table.written(update) or {})

    def replace(self, group: ProxyGroup, pace: Pace, *, replaced: Pace) -> bool:
        """Store a new pace and return True, or return False if another instance replaced `replaced` before."""
        item = _key(group) | {
            "interval": pace.interval // MILLISECOND,
            "since": milliseconds(pace.since),
            "polled_at": milliseconds(pace.polled_at),
            "polls_per_second": Decimal(f"{pace.polls_per_second:.6f}"),
            **{_name(KNOWN, kind): number for kind, number in pace.known.items()},
        }
        return self.table.write(Put(item, attr("since").eq(milliseconds(replaced.since))))


def _key(group: ProxyGroup) -> Item:
    return {"pk": PARTITION, "sk": group}


def _name(what: str, kind: ProxyKind) -> str:
    return SEPARATOR.join((what, kind.nat, kind.proxy_type))


def _pace(item: Item) -> Pace:
    return Pace(
        interval=int(item["interval"]) * MILLISECOND,
        since=moment(item["since"]),
        polled_at=moment(item["polled_at"]),
        polls=_numbers(item, POLLS),
        polls_per_second=float(item.get("polls_per_second", 0)),
        known=_numbers(item, KNOWN),
    )


def _numbers(item: Item, what: str) -> Mapping[ProxyKind, int]:
    named = ((name.split(SEPARATOR), value) for name, value in item.items() if name.startswith(what + SEPARATOR))
    return {ProxyKind(Nat(nat), proxy_type): int(value) for (_, nat, proxy_type), value in named}
