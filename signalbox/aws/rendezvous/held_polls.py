"""The slots of held polls and the last poll of each NAT type, in the table `Rendezvous`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key

from signalbox.aws.shared.dynamodb import Item, deleted, every_item, milliseconds, moment, succeeds
from signalbox.rendezvous.rules.held_polls import HeldPoll
from signalbox.rendezvous.rules.states import ClientId, ProxySessionId
from signalbox.rendezvous.wire.nat import Nat

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

# A poll is noted at most this often by each function instance, so that the item stays cool however many poll.
NOTED_EVERY = timedelta(seconds=5)
KEPT_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DynamoHeldPolls:
    """`HeldPolls` over the table `Rendezvous`."""

    table: "Table"

    def take(self, poll: HeldPoll, *, now: datetime) -> bool:
        """Occupy the slot of `poll` if it is free; say whether it was."""
        is_free = Attr("pk").not_exists() | Attr("until").lte(milliseconds(now)) | Attr("sid").eq(poll.sid)
        return succeeds(lambda: self.table.put_item(Item=_item(poll), ConditionExpression=is_free))

    def look(self, poll: HeldPoll) -> ClientId | None:
        """Return the offer that was shown to this held poll, if any."""
        item = self.table.get_item(Key=_key(poll.slot), ConsistentRead=True).get("Item")
        if item is None or item["sid"] != poll.sid or "offer" not in item:
            return None
        return ClientId(str(item["offer"]))

    def lend(self, poll: HeldPoll, *, client_id: ClientId) -> bool:
        """Show an offer to a held poll; say whether it is still there and was shown none yet."""
        return succeeds(
            lambda: self.table.update_item(
                Key=_key(poll.slot),
                UpdateExpression="SET offer = :offer",
                ConditionExpression=Attr("sid").eq(poll.sid) & Attr("offer").not_exists(),
                ExpressionAttributeValues={":offer": client_id},
            )
        )

    def leave(self, poll: HeldPoll) -> ClientId | None:
        """Free the slot of `poll`, which is shown nothing from then on; return the offer that it was shown, if any."""
        item = deleted(self.table, {"Key": _key(poll.slot), "ConditionExpression": Attr("sid").eq(poll.sid)})
        return ClientId(str(item["offer"])) if item and "offer" in item else None

    def held(self, *, now: datetime) -> list[HeldPoll]:
        """Return all polls that are held now."""
        query = {"KeyConditionExpression": Key("pk").eq("held"), "ConsistentRead": True}
        polls = [_poll(item) for item in every_item(self.table.query, query)]
        return [poll for poll in polls if poll.until > now]


@dataclass(frozen=True, slots=True)
class DynamoPresence:
    """`Presence` over the table `Rendezvous`; `noted` is what this function instance wrote last."""

    table: "Table"
    noted: dict[Nat, datetime] = field(default_factory=dict)

    def note(self, nat: Nat, *, now: datetime) -> None:
        """Remember that a proxy of this NAT type polled, to within a few seconds."""
        last = self.noted.get(nat)
        if last is None or now - last >= NOTED_EVERY:
            self.table.put_item(Item={"pk": "presence", "sk": nat, "polled_at": milliseconds(now)})
            self.noted[nat] = now

    def last_polls(self) -> Mapping[Nat, datetime]:
        """Return the last poll of each NAT type that was ever seen."""
        page = self.table.query(KeyConditionExpression=Key("pk").eq("presence"), ConsistentRead=True)
        return {Nat(item["sk"]): moment(item["polled_at"]) for item in page["Items"]}  # type: ignore[arg-type] # ours


def _key(slot: int) -> Item:
    return {"pk": "held", "sk": f"{slot:05}"}


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
