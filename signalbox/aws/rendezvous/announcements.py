"""The announced offers of other regions, in the table `Rendezvous`."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.aws.rendezvous.offers import OPEN_OFFERS_INDEX, parse_record
from signalbox.aws.shared.conditions import Attr, Key
from signalbox.aws.shared.dynamodb import Item, milliseconds, succeeds
from signalbox.rendezvous.rules.states import (
    ClientId,
    ForeignOffer,
    OfferPool,
    OfferState,
    Rendezvous,
    offer_pool,
)

if TYPE_CHECKING:
    from signalbox.aws.shared.table import DynamoTable

# The announcements of one query: more than one, since another proxy may take the first between the query and the claim.
PAGE_SIZE = 25
# An announcement that no poll has taken or removed since is of no use; polls remove what they see after the deadline.
KEPT_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DynamoAnnouncements:
    """`Announcements`: an item for each, in partitions of the index of open offers that no stage without peers reads.

    Each home region has partitions of its own, so that the offers of one that is away hide nothing.
    """

    table: "DynamoTable"

    def announce(self, record: Rendezvous, *, home: str) -> None:
        """Store the announcement of an offer of the region `home`; repeated calls replace it."""
        self.table.put_item(Item=_item(record, home=home))

    def announced(self, pools: Iterable[OfferPool], *, home: str, now: datetime) -> list[Rendezvous]:
        """Return a page of the announced offers of a region whose `available_at` has passed, oldest first."""
        found = [record for pool in pools for record in self._available(_partition(pool, home), now)]
        return sorted(found, key=lambda record: record.created_at)

    def _available(self, partition: str, now: datetime) -> list[Rendezvous]:
        page = self.table.query(
            IndexName=OPEN_OFFERS_INDEX,
            KeyConditionExpression=Key("pool").eq(partition) & Key("available_at").lte(milliseconds(now)),
            Limit=PAGE_SIZE,
        )
        return [parse_record(item) for item in page["Items"]]

    def take(self, client_id: ClientId, *, now: datetime, until: datetime) -> bool:
        """Hide an available announcement until `until`; return False if another poll did so or there is none."""
        return succeeds(
            lambda: self.table.update_item(
                Key=_key(client_id),
                UpdateExpression="SET available_at = :until",
                ConditionExpression=Attr("available_at").lte(milliseconds(now)),
                ExpressionAttributeValues={":until": milliseconds(until)},
            )
        )

    def remove(self, client_id: ClientId) -> None:
        """Delete an announcement; do nothing if there is none."""
        self.table.delete_item(Key=_key(client_id))


def _key(client_id: ClientId) -> Item:
    return {"pk": f"announced#{client_id}", "sk": "announced"}


def _partition(pool: OfferPool, home: str) -> str:
    return f"{pool}@{home}"


def _item(record: Rendezvous, *, home: str) -> Item:
    client_id = ForeignOffer(record.client_id, home).key
    return _key(client_id) | {
        "pool": _partition(offer_pool(record.nat), home),
        "client_id": client_id,
        "method": record.method,
        "state": OfferState.PENDING,
        "created_at": milliseconds(record.created_at),
        "available_at": milliseconds(record.available_at),
        "deadline": milliseconds(record.deadline),
        "nat": record.nat,
        "matches": record.matches,
        "expires_at": round((record.deadline + KEPT_FOR).timestamp()),
    }
