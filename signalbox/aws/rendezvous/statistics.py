"""The live counters and the daily key of address hashes, in the table `Rendezvous`."""

import logging
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import IS_NEW, Item, Put, Update, attr

KEY_BYTES = 32
MOST_SEEN = 10_000
# DynamoDB takes 1,000 writes a second to one partition key, and the API admits 5,000 requests a second.
SHARDS = 8
COUNTERS_KEPT_FOR = timedelta(days=40)
# The day itself and one hour for late events; after that no hash can be traced to an address.
KEY_KEPT_FOR = timedelta(days=1, hours=1)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DynamoStatistics:
    """`Statistics`: one item per counter, so that an increment costs one write unit whatever their number.

    Each function instance adds to one of `SHARDS` copies of a day's counters; readers add them up. The key of the first
    shard has no number.
    """

    table: DynamoTable
    shard: int = field(default_factory=lambda: secrets.randbelow(SHARDS))
    keys: dict[date, bytes] = field(default_factory=dict)
    seen: set[tuple[date, str]] = field(default_factory=set)

    def add(self, day: date, counters: Mapping[str, int]) -> None:
        """Add to the counters of a day; a failure is only logged, since the history contains the same events."""
        for name, count in counters.items():
            try:
                self._add(day, name, count)
            except (ClientError, BotoCoreError):
                logger.exception("counter %r was not increased", name)

    def _add(self, day: date, name: str, count: int) -> None:
        key = {"pk": _partition(day, self.shard), "sk": name}
        self.table.write(Update(key, sets=_expiry(day, COUNTERS_KEPT_FOR), adds={"n": count}))

    def first_seen(self, day: date, key: str) -> bool:
        """Store a key for a day; return whether it is new on that day."""
        if (day, key) in self.seen:
            return False
        self._make_room(day)
        self.seen.add((day, key))
        item = {"pk": f"distinct#{day}#{key}", "sk": "distinct"} | _expiry(day, KEY_KEPT_FOR)
        try:
            return self.table.write(Put(item, IS_NEW))
        except (ClientError, BotoCoreError):
            logger.exception("a distinct proxy was not remembered")
            return False

    def _make_room(self, day: date) -> None:
        """Forget other days, and all keys when they are many: a stranger can make up addresses."""
        is_full = len(self.seen) >= MOST_SEEN
        self.seen.difference_update([entry for entry in self.seen if is_full or entry[0] != day])

    def key(self, day: date) -> bytes:
        """Return the secret key for the address hashes of a day; it is deleted after that day."""
        if day not in self.keys:
            self.keys.clear()
            self.keys[day] = self._shared_key(day)
        return self.keys[day]

    def _shared_key(self, day: date) -> bytes:
        key = {"pk": f"key#{day}", "sk": "key"}
        secret = {"secret": secrets.token_bytes(KEY_BYTES)} | _expiry(day, KEY_KEPT_FOR)
        # The first function instance of the day stores the key; all others read the stored one.
        self.table.write(Put(key | secret, IS_NEW))
        stored: bytes = (self.table.get(key) or secret)["secret"]
        return stored

    def counters(self, day: date) -> Mapping[str, int]:
        """Return the counters of a day, added up over the shards."""
        sums: Counter[str] = Counter()
        for shard in range(SHARDS):
            for item in self.table.query(attr("pk").eq(_partition(day, shard)), is_consistent=False):
                sums[item["sk"]] += int(item["n"])
        return dict(sums)


def _partition(day: date, shard: int) -> str:
    return f"statistics#{day}#{shard}" if shard else f"statistics#{day}"


def _expiry(day: date, kept_for: timedelta) -> Item:
    return ttl(datetime.combine(day, time(), UTC) + kept_for)
