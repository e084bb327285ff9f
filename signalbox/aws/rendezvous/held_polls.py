"""The slots of held polls and the time of each NAT type's last poll, in the table `Rendezvous`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.aws.shared.conditions import Attr, Key
from signalbox.aws.shared.dynamodb import Item, deleted, every_item, milliseconds, moment, succeeds
from signalbox.rendezvous.model.held_polls import HeldPoll
from signalbox.rendezvous.model.states import ClientId, ProxySessionId
from signalbox.rendezvous.wire.nat import Nat

if TYPE_CHECKING:
    from signalbox.aws.shared.table import DynamoTable

# Each function instance writes the time of a poll at most this often, so that the item does not become a hot key.
NOTED_EVERY = timedelta(seconds=5)
KEPT_FOR = timedelta(hours=1)
# Slots of one partition key, from which DynamoDB reads 3,000 units a second. Its held polls read 1,000 of them, four a
# second each, and one list of its slots (40 kB) takes 10: 200 lists a second.
SLOTS_PER_PARTITION = 250


@dataclass(frozen=True, slots=True)
class DynamoHeldPolls:
    """`HeldPolls` in the table `Rendezvous`; slots below `limit` are found."""

    table: "DynamoTable"
    limit: int = SLOTS_PER_PARTITION

    def acquire(self, poll: HeldPoll, *, now: datetime) -> bool:
        """Store `poll` in its slot and return True, or return False if another poll holds the slot."""
        is_free = Attr("pk").not_exists() | Attr("until").lte(milliseconds(now)) | Attr("sid").eq(poll.sid)
        return succeeds(lambda: self.table.put_item(Item=_item(poll), ConditionExpression=is_free))

    def reserved_offer(self, poll: HeldPoll) -> ClientId | None:
        """Return the offer that is reserved for this held poll, or None."""
        # Half the price of a consistent read. A reservation that it misses is found by the next one.
        item = self.table.get_item(Key=_key(poll.slot)).get("Item")
        if item is None or item["sid"] != poll.sid or "offer" not in item:
            return None
        return ClientId(str(item["offer"]))

    def reserve(self, poll: HeldPoll, *, client_id: ClientId, until: datetime) -> bool:
        """Reserve an offer for a held poll; return False if the poll has left or already has an offer."""
        return succeeds(
            lambda: self.table.update_item(
                Key=_key(poll.slot),
                UpdateExpression="SET offer = :offer, #until = :until",
                ConditionExpression=Attr("sid").eq(poll.sid) & Attr("offer").not_exists(),
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":offer": client_id, ":until": milliseconds(min(until, poll.until))},
            )
        )

    def release(self, poll: HeldPoll) -> ClientId | None:
        """Free the slot of `poll` and return the offer that was reserved for it, or None."""
        item = deleted(self.table, {"Key": _key(poll.slot), "ConditionExpression": Attr("sid").eq(poll.sid)})
        return ClientId(str(item["offer"])) if item and "offer" in item else None

    def held(self, *, now: datetime) -> list[HeldPoll]:
        """Return all polls whose hold has not ended at `now`."""
        polls = [_poll(item) for start in range(0, self.limit, SLOTS_PER_PARTITION) for item in self._items(start)]
        return [poll for poll in polls if poll.until > now]

    def _items(self, slot: int) -> Iterator[Item]:
        """Yield the items of the partition that contains a slot."""
        query = {"KeyConditionExpression": Key("pk").eq(_key(slot)["pk"]), "ConsistentRead": True}
        return every_item(self.table.query, query)


@dataclass(frozen=True, slots=True)
class DynamoPresence:
    """`ProxyPresence` in the table `Rendezvous`; `noted` holds the times that this function instance wrote last."""

    table: "DynamoTable"
    noted: dict[Nat, datetime] = field(default_factory=dict)

    def record_poll(self, nat: Nat, *, now: datetime) -> None:
        """Record that a proxy of this NAT type polled; the stored time may be a few seconds old."""
        last = self.noted.get(nat)
        if last is None or now - last >= NOTED_EVERY:
            self.table.put_item(Item={"pk": "presence", "sk": nat, "polled_at": milliseconds(now)})
            self.noted[nat] = now

    def last_polls(self) -> Mapping[Nat, datetime]:
        """Return the time of the last poll by NAT type; types that never polled are missing."""
        page = self.table.query(KeyConditionExpression=Key("pk").eq("presence"), ConsistentRead=True)
        return {Nat(item["sk"]): moment(item["polled_at"]) for item in page["Items"]}


def _key(slot: int) -> Item:
    partition = slot // SLOTS_PER_PARTITION
    return {"pk": f"held#{partition}" if partition else "held", "sk": f"{slot:05}"}


def _item(poll: HeldPoll) -> Item:
    return _key(poll.slot) | {
        "sid": poll.sid,
        "nat": poll.nat,
        "proxy_type": poll.proxy_type,
        "clients": poll.clients,
        "since": milliseconds(poll.since),
        "until": milliseconds(poll.until),
        "expires_at": round((poll.until + KEPT_FOR).timestamp()),
    }


def _poll(item: Item) -> HeldPoll:
    return HeldPoll(
        slot=int(item["sk"]),
        sid=ProxySessionId(item["sid"]),
        nat=Nat(item["nat"]),
        proxy_type=item["proxy_type"],
        clients=int(item["clients"]),
        since=moment(item["since"]),
        until=moment(item["until"]),
        offer=ClientId(item["offer"]) if "offer" in item else None,
    )
