"""The paces of the groups of proxies, in the table `Rendezvous`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from signalbox.aws.shared.conditions import Attr, Key
from signalbox.aws.shared.dynamodb import Item, milliseconds, moment, succeeds
from signalbox.rendezvous.model.pace import Pace, Paces, ProxyGroup, ProxyKind, first_pace
from signalbox.rendezvous.wire.nat import Nat

if TYPE_CHECKING:
    from signalbox.aws.shared.table import DynamoTable

PARTITION = "pace"
# The attributes of the numbers by kind of proxy: `polls|restricted|webext`.
POLLS, KNOWN, SEPARATOR = "polls", "known", "|"
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class DynamoPaces:
    """`ProxyPaces`: an item for each group, to which function instances add their polls with one write."""

    table: "DynamoTable"

    def all(self) -> Paces:
        """Return the pace of each group; groups that never polled are missing."""
        page = self.table.query(KeyConditionExpression=Key("pk").eq(PARTITION), ConsistentRead=True)
        return {ProxyGroup(item["sk"]): _pace(item) for item in page["Items"]}

    def add(self, group: ProxyGroup, polls: Mapping[ProxyKind, int], *, now: datetime) -> Pace:
        """Add polls to a group and return its pace; the first poll of a group makes it."""
        first, names = first_pace(now), {f"#p{n}": _name(POLLS, kind) for n, kind in enumerate(polls)}
        added = ", ".join(f"{name} :n{name[2:]}" for name in names)
        item = self.table.update_item(
            Key=_key(group),
            UpdateExpression="SET polled_at = :now, since = if_not_exists(since, :now), "
            "#interval = if_not_exists(#interval, :interval)" + (f" ADD {added}" if added else ""),
            ExpressionAttributeNames={"#interval": "interval"} | names,
            ExpressionAttributeValues={":now": milliseconds(now), ":interval": first.interval // MILLISECOND}
            | {f":n{n}": number for n, number in enumerate(polls.values())},
            ReturnValues="ALL_NEW",
        )["Attributes"]
        return _pace(item)

    def replace(self, group: ProxyGroup, pace: Pace, *, replaced: Pace) -> bool:
        """Store a new pace and return True, or return False if another instance replaced `replaced` before."""
        item = _key(group) | {
            "interval": pace.interval // MILLISECOND,
            "since": milliseconds(pace.since),
            "polled_at": milliseconds(pace.polled_at),
            "polls_per_second": Decimal(f"{pace.polls_per_second:.6f}"),
            **{_name(KNOWN, kind): number for kind, number in pace.known.items()},
        }
        is_current = Attr("since").eq(milliseconds(replaced.since))
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=is_current))


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
