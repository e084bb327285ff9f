"""The change list of a partition of subscribers: the newest changes in its version item, earlier ones in chunks.

Raising the version assigns each change its number permanently. A chunk's key contains the numbers of its first and last
change, so every writer writes the same content under it. Changes are written to a chunk before they are trimmed from
the version item. If a chunk has expired, or its writer has crashed, a number is missing, and readers detect that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.aws.live.items import chunk_key, chunks_between, subscriber_version_key
from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, ttl
from signalbox.aws.shared.expressions import Item, Put, Update, attr

LISTED_CHANGES = 16  # that remain in the version item after trimming, so that it costs one or two read units
TRIMMED_FROM = 32
# Per write, and in the list before it: together below DynamoDB's 400 KB, with 700 bytes for the largest change.
MOST_AT_ONCE, FULL = 100, 250
MOST_TRIMMED = 120  # an update expression names each index, and is limited to 300 operators and 4 KB
# Longer than any row of the partition. Later versions start at the current time, so no number is used twice.
VERSIONS_KEPT_FOR = timedelta(days=1)
CHUNKS_KEPT_FOR = timedelta(hours=1)  # few function instances that have not read for this long still exist
VERSION, FIRST_NUMBER, CHANGES = attr("version"), attr("first_number"), attr("changes")


@dataclass(frozen=True, slots=True)
class DynamoSubscriberChanges:
    """The change lists of partitions."""

    table: DynamoTable

    def add(self, partition: str, changes: Sequence[Item], *, at: datetime) -> None:
        """Append changes to a partition: one write per 100 changes, and two more when the list becomes long."""
        for start in range(0, len(changes), MOST_AT_ONCE):
            batch = changes[start : start + MOST_AT_ONCE]
            version = self._append(partition, batch, at=at)
            if version is None:
                self._replace(partition, batch, at=at)
            elif _is_to_be_trimmed(len(version["changes"]), added=len(batch)):
                self._trim(partition, version, at=at)

    def earlier_changes(self, partition: str, numbers: range) -> Mapping[int, Item]:
        """Return the changes of the chunks that overlap `numbers`, by number; expired ones are missing."""
        chunks = attr("pk").eq(partition) & attr("sk").between(*chunks_between(numbers))
        found: dict[int, Item] = {}
        for item in self.table.query(chunks):
            found.update(enumerate(item["changes"], start=int(item["first_number"])))
        return found

    def _append(self, partition: str, changes: Sequence[Item], *, at: datetime) -> Item | None:
        """Raise the version and append to its list; return both, or None without a write if the list is full."""
        update = Update(
            subscriber_version_key(partition),
            sets={
                "version": VERSION.otherwise(milliseconds(at)) + len(changes),
                "first_number": FIRST_NUMBER.otherwise(milliseconds(at) + 1),
                "changes": CHANGES.otherwise([]).extended(changes),
                **ttl(at + VERSIONS_KEPT_FOR),
            },
            condition=CHANGES.not_exists() | CHANGES.size().lt(FULL),
        )
        return self.table.written(update, "UPDATED_NEW")

    def _trim(self, partition: str, version: Item, *, at: datetime) -> None:
        """Write the oldest changes to a chunk, then remove them from the list unless another writer already has.

        A list that starts at the same number starts with the same changes: other writers only append.
        """
        first, oldest = _first_number(version), version["changes"][:-LISTED_CHANGES][:MOST_TRIMMED]
        self._put_chunk(partition, first, oldest, at=at)
        update = Update(
            subscriber_version_key(partition),
            sets={"first_number": first + len(oldest)},
            # In descending order, which is also right for an emulator that removes the elements one after the other.
            removes=[CHANGES.at(index) for index in reversed(range(len(oldest)))],
            condition=FIRST_NUMBER.eq(first),
        )
        self.table.write(update)

    def _replace(self, partition: str, changes: Sequence[Item], *, at: datetime) -> None:
        """Raise the version and replace its full list, which many concurrent writers or crashed trimmers caused.

        The replaced changes are briefly in no chunk; a router that reads at that time reads all rows.
        """
        update = Update(
            subscriber_version_key(partition),
            sets={
                "first_number": VERSION + 1,
                "version": VERSION + len(changes),
                "changes": list(changes),
                **ttl(at + VERSIONS_KEPT_FOR),
            },
        )
        before = self.table.written(update, "ALL_OLD") or {}
        self._put_chunk(partition, _first_number(before), before["changes"], at=at)

    def _put_chunk(self, partition: str, first: int, changes: Sequence[Item], *, at: datetime) -> None:
        chunk = {"first_number": first, "changes": list(changes)} | ttl(at + CHUNKS_KEPT_FOR)
        key = chunk_key(partition, first=first, last=first + len(changes) - 1)
        self.table.write(Put(key | chunk))


def _is_to_be_trimmed(length: int, *, added: int) -> bool:
    """Return whether the writer that made a list this long trims it.

    Of concurrent writers only some trim; if one crashes, a later writer trims.
    """
    return length >= TRIMMED_FROM and length % LISTED_CHANGES < added


def _first_number(version: Item) -> int:
    return int(version["version"]) - len(version["changes"]) + 1
