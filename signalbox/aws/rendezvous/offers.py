"""The table of rendezvous records: each transition of a rendezvous is one conditional write.

The condition expressions are equivalent to `is_claimable`, `is_answerable` and `TRANSITIONS` in
`signalbox.rendezvous.model.states`; one test suite runs against this adapter and the in-memory one.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING
from zlib import crc32

from signalbox.aws.shared.conditions import Attr, Condition, Key
from signalbox.aws.shared.dynamodb import Item, every_item, milliseconds, moment, succeeds, updated, updated_or_there
from signalbox.queues import Lease, QueueName, QueueUrl, queue_name
from signalbox.rendezvous.model.states import (
    OPEN_STATES,
    Claimant,
    ClaimResult,
    ClientId,
    OfferPool,
    OfferState,
    ProxySessionId,
    Rendezvous,
    RendezvousMethod,
    is_pooled,
    offer_pool,
)
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.counters import UNKNOWN_COUNTRY
from signalbox.rendezvous.wire.nat import Nat

if TYPE_CHECKING:
    from signalbox.aws.shared.table import DynamoTable

OPEN_OFFERS_INDEX = "open_offers"
# The partition of the index with the offers in final states, by the end of the lease of their client's queue.
ENDED = "ended"
# The attributes that the index projects in addition to its keys: enough for the choice, and small enough that a write
# costs one write unit.
LISTED = ("client_id", "method", "state", "created_at", "deadline", "nat", "lent_to", "matches")
# The offers of one query: more than one, since another proxy may claim the first between the query and the claim.
PAGE_SIZE = 25
# After the lease of the client's queue, which the sweep finds by the record, and after the deadline: longer than the
# retention of the broker queue, so that every late duplicate of an offer is recognised.
KEPT_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DynamoOffers:
    """`Offers` in the table `Rendezvous`.

    The open offers of a pool are in `shards` partitions of the index, by a hash of the client: DynamoDB writes 1,000
    units a second to one, and an answered offer takes four. The key of the first shard has no number.
    """

    table: "DynamoTable"
    shards: int = 1

    def find(self, client_id: ClientId) -> Rendezvous | None:
        """Return the newest record of a client, or None."""
        item = self.table.get_item(Key=_key(client_id), ConsistentRead=True).get("Item")
        return parse_record(item) if item else None

    def open(self, record: Rendezvous, *, replacing: Rendezvous | None) -> bool:
        """Store a new record and return True, or return False if the stored record is not `replacing`."""
        condition: Condition = Attr("pk").not_exists()
        if replacing is not None:
            # The replaced record is final, and no other call has replaced it since it was read.
            condition = Attr("created_at").eq(milliseconds(replacing.created_at)) & Attr("state").eq(replacing.state)
        item = _item(record)
        if record.state not in OPEN_STATES:
            item["pool"] = ENDED
        elif is_pooled(record):
            item["pool"] = self._pool(record)
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=condition))

    def claimable(self, pools: Iterable[OfferPool], *, now: datetime) -> list[Rendezvous]:
        """Return a page of the open offers in these pools whose `available_at` has passed, oldest first."""
        partitions = [_partition(pool, shard) for pool in pools for shard in range(self.shards)]
        found = [record for partition in partitions for record in self._available(partition, now)]
        return sorted(found, key=lambda record: record.created_at)

    def _pool(self, record: Rendezvous) -> str:
        """Return the partition of the index for an offer."""
        return _partition(offer_pool(record.nat), crc32(record.client_id.encode()) % self.shards)

    def _available(self, partition: str, now: datetime) -> list[Rendezvous]:
        page = self.table.query(
            IndexName=OPEN_OFFERS_INDEX,
            KeyConditionExpression=Key("pool").eq(partition) & Key("available_at").lte(milliseconds(now)),
            Limit=PAGE_SIZE,
        )
        return [parse_record(item) for item in page["Items"]]

    def claim(self, client_id: ClientId, *, proxy: Claimant, now: datetime, until: datetime) -> ClaimResult:
        """Claim an available offer (`is_claimable`) for a proxy until `until`."""
        is_reserved = Attr("state").eq(OfferState.PENDING) & Attr("lent_to").eq(proxy.sid)
        is_free = Attr("available_at").lte(milliseconds(now))
        is_open = Attr("state").is_in(sorted(OPEN_STATES))
        item, is_stored = updated_or_there(
            self.table,
            {
                "Key": _key(client_id),
                "UpdateExpression": "SET #state = :matched, sid = :sid, proxy_type = :type, available_at = :until "
                "ADD matches :one",
                "ConditionExpression": is_open & Attr("deadline").gt(milliseconds(now)) & (is_free | is_reserved),
                "ExpressionAttributeNames": {"#state": "state"},
                "ExpressionAttributeValues": {
                    ":matched": OfferState.MATCHED,
                    ":sid": proxy.sid,
                    ":type": proxy.proxy_type,
                    ":until": milliseconds(until),
                    ":one": 1,
                },
            },
        )
        if item is None:
            return ClaimResult(None, is_stored)
        self.table.put_item(Item=_match_item(proxy.sid, client_id, expires_at=item["expires_at"]))
        return ClaimResult(parse_record(item), is_stored)

    def matched_by(self, sid: ProxySessionId) -> ClientId | None:
        """Return the client of the newest match of a proxy session, or None."""
        item = self.table.get_item(Key=_match_key(sid), ConsistentRead=True).get("Item")
        return ClientId(str(item["client_id"])) if item else None

    def answer(
        self, client_id: ClientId, *, sid: ProxySessionId, reply: str, now: datetime, leased_until: datetime
    ) -> Rendezvous | None:
        """Store the answer to an offer and return the record, or return None if it is not `is_answerable`."""
        is_mine = Attr("state").eq(OfferState.MATCHED) & Attr("sid").eq(sid)
        in_time = Attr("deadline").gt(milliseconds(now))
        return self._finish(
            client_id, OfferState.ANSWERED, reply=reply, condition=is_mine & in_time, leased_until=leased_until
        )

    def close(self, client_id: ClientId, *, state: OfferState, reply: str, leased_until: datetime) -> Rendezvous | None:
        """Move an open offer to a final state and return the record, or return None if it was already final."""
        is_open = Attr("state").is_in(sorted(OPEN_STATES))
        return self._finish(client_id, state, reply=reply, condition=is_open, leased_until=leased_until)

    def _finish(
        self, client_id: ClientId, state: OfferState, *, reply: str, condition: Condition, leased_until: datetime
    ) -> Rendezvous | None:
        item = updated(
            self.table,
            {
                "Key": _key(client_id),
                # The item goes from its pool to the ended offers. The removed attributes would cost a unit more: a unit
                # is 1 KB, and the reply is as long as the session description.
                "UpdateExpression": "SET #state = :final, reply = :reply, #pool = :ended, "
                "available_at = :leased_until, expires_at = :expires_at REMOVE session_description, receipt_handle",
                "ConditionExpression": condition,
                "ExpressionAttributeNames": {"#state": "state", "#pool": "pool"},
                "ExpressionAttributeValues": {
                    ":final": state,
                    ":reply": reply,
                    ":ended": ENDED,
                    ":leased_until": milliseconds(leased_until),
                    ":expires_at": _expires_at(leased_until),
                },
            },
            returned="ALL_OLD",
        )
        changed = {"state": state, "reply": reply, "available_at": Decimal(milliseconds(leased_until))}
        return parse_record(item | changed | {"session_description": ""}) if item else None

    def renew(self, record: Rendezvous, *, receipt_handle: str) -> bool:
        """Store the newest receipt handle of an open offer's message, and put the offer into its pool.

        Return False if the offer is not open.
        """
        return succeeds(
            lambda: self.table.update_item(
                Key=_key(record.client_id),
                UpdateExpression="SET receipt_handle = :handle, #pool = :pool",
                ConditionExpression=Attr("state").is_in(sorted(OPEN_STATES)),
                ExpressionAttributeNames={"#pool": "pool"},
                ExpressionAttributeValues={":handle": receipt_handle, ":pool": self._pool(record)},
            )
        )


@dataclass(frozen=True, slots=True)
class DynamoEndedLeases:
    """`EndedLeases` in the index of the table `Rendezvous`, where the sweep finds the queues at no further write.

    `queues_url` is the common start of the URLs of client queues, and `shards` the partitions of a pool.
    """

    table: "DynamoTable"
    queues_url: str
    shards: int = 1

    def between(self, since: datetime, until: datetime) -> Iterator[Lease]:
        """Yield the leases that end in this period, both ends included, oldest first; pages are read as needed."""
        ends = Key("available_at").between(milliseconds(since), milliseconds(until))
        yield from self._leases(Key("pool").eq(ENDED) & ends)

    def needed(self, *, now: datetime) -> AbstractSet[QueueName]:
        """Return the queues of clients whose offer is open and in its pool, or whose lease has not ended."""
        chosen = [Key("pool").eq(ENDED) & Key("available_at").gt(milliseconds(now))]
        chosen += [Key("pool").eq(_partition(pool, shard)) for pool in OfferPool for shard in range(self.shards)]
        return {lease.queue_name for one in chosen for lease in self._leases(one)}

    def _leases(self, condition: Condition) -> Iterator[Lease]:
        for item in every_item(self.table.query, {"IndexName": OPEN_OFFERS_INDEX, "KeyConditionExpression": condition}):
            if item["method"] == RendezvousMethod.SQS:
                url = QueueUrl(f"{self.queues_url}{item['client_id']}")
                yield Lease(queue_name(url), url, events.CAPABILITY, moment(item["available_at"]))


def _partition(pool: OfferPool, shard: int) -> str:
    return f"{pool}#{shard}" if shard else str(pool)


def _key(client_id: ClientId) -> Item:
    return {"pk": f"offer#{client_id}", "sk": "offer"}


def _match_key(sid: ProxySessionId) -> Item:
    return {"pk": f"proxy#{sid}", "sk": "proxy"}


def _match_item(sid: ProxySessionId, client_id: ClientId, *, expires_at: object) -> Item:
    return _match_key(sid) | {"client_id": client_id, "expires_at": expires_at}


def _expires_at(end: datetime) -> int:
    return round((end + KEPT_FOR).timestamp())


def _item(record: Rendezvous) -> Item:
    item: Item = _key(record.client_id) | {
        "client_id": record.client_id,
        "method": record.method,
        "state": record.state,
        "created_at": milliseconds(record.created_at),
        "available_at": milliseconds(record.available_at),
        "deadline": milliseconds(record.deadline),
        "nat": record.nat,
        "relay_url": record.relay_url,
        "country": record.country,
        "offer_digest": record.offer_digest,
        "message_id": record.message_id,
        "receipt_handle": record.receipt_handle,
        "queue_url": record.queue_url,
        "lent_to": record.reserved_for,
        "sid": record.sid,
        "proxy_type": record.proxy_type,
        "matches": record.matches,
        "reply": record.reply,
        "expires_at": _expires_at(max(record.deadline, record.available_at)),
    }
    if record.state in OPEN_STATES:
        item["session_description"] = record.session_description
    return {name: value for name, value in item.items() if value is not None}


def parse_record(item: Item) -> Rendezvous:
    """Return the record of an item of the table or of the index, which has fewer attributes."""
    sid, reserved_for, queue_url = item.get("sid"), item.get("lent_to"), item.get("queue_url")
    return Rendezvous(
        client_id=ClientId(item["client_id"]),
        method=RendezvousMethod(item["method"]),
        state=OfferState(item["state"]),
        created_at=moment(item["created_at"]),
        available_at=moment(item["available_at"]),
        deadline=moment(item["deadline"]),
        nat=Nat(item["nat"]),
        session_description=item.get("session_description", ""),
        relay_url=item.get("relay_url", ""),
        country=item.get("country", UNKNOWN_COUNTRY),
        offer_digest=item.get("offer_digest", ""),
        message_id=item.get("message_id"),
        receipt_handle=item.get("receipt_handle"),
        queue_url=QueueUrl(queue_url) if queue_url else None,
        reserved_for=ProxySessionId(reserved_for) if reserved_for else None,
        sid=ProxySessionId(sid) if sid else None,
        proxy_type=item.get("proxy_type"),
        matches=int(item["matches"]),
        reply=item.get("reply"),
    )
