"""What has changed in a partition of subscribers: the newest changes in its version, and those before in chunks beside.

Raising the version settles which number a change has, once and for all. The key of a chunk has the numbers of its first
and its last change, so it has the same content whoever writes it, and however often. What is trimmed from the version
stands in a chunk before; where a chunk expired, or its writer died, a number is missing, and readers see that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Key

from signalbox.aws.live.items import chunk_key, chunks_between, subscriber_version_key
from signalbox.aws.shared.dynamodb import Item, every_item, milliseconds, succeeds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

LISTED_CHANGES = 16  # a version's item stays within a read unit or two
TRIMMED_FROM = 32
# Together within DynamoDB's 400 KB, at 700 bytes for the largest change: what is added at once, and to what.
MOST_AT_ONCE, FULL = 100, 250
MOST_TRIMMED = 120  # an expression names each place, and may have 300 operators and 4 KB
# Longer than any row of the partition lives; afterwards versions begin where the clock is, so that none comes twice.
VERSIONS_KEPT_FOR = timedelta(days=1)
CHUNKS_KEPT_FOR = timedelta(hours=1)  # functions that have not looked for so long are mostly gone


@dataclass(frozen=True, slots=True)
class DynamoSubscriberChanges:
    """The changes of partitions. Several threads may use it: it has the client, and not the table, do the writing."""

    table: "Table"

    def add(self, partition: str, changes: Sequence[Item], *, at: datetime) -> None:
        """Raise a version by its changes: a call for 100 of them, and two more if the list becomes long."""
        for start in range(0, len(changes), MOST_AT_ONCE):
            some = changes[start : start + MOST_AT_ONCE]
            raised = self._append(partition, some, at=at)
            if raised is None:
                self._begin_anew(partition, some, at=at)
            elif _is_to_be_trimmed(len(raised["changes"]), added=len(some)):
                self._trim(partition, raised, at=at)

    def earlier_changes(self, partition: str, numbers: range) -> Mapping[int, Item]:
        """Return the changes in chunks by their numbers: of those that were asked for all that are kept, and others."""
        condition = Key("pk").eq(partition) & Key("sk").between(*chunks_between(numbers))
        found: dict[int, Item] = {}
        for item in every_item(self.table.query, {"KeyConditionExpression": condition, "ConsistentRead": True}):
            found.update(enumerate(item["changes"], start=int(item["first_number"])))
        return found

    def _append(self, partition: str, changes: Sequence[Item], *, at: datetime) -> Item | None:
        """Raise a version and return it with its list, or do nothing and return None if that is full."""
        client = self.table.meta.client
        try:
            answer = client.update_item(
                TableName=self.table.name,
                Key=subscriber_version_key(partition),
                UpdateExpression=(
                    "SET #version = if_not_exists(#version, :base) + :count, expires_at = :expires_at, "
                    "first_number = if_not_exists(first_number, :first), "
                    "changes = list_append(if_not_exists(changes, :none), :changes)"
                ),
                ConditionExpression="attribute_not_exists(changes) OR size(changes) < :full",
                ExpressionAttributeNames={"#version": "version"},
                ExpressionAttributeValues={
                    ":base": milliseconds(at),
                    ":first": milliseconds(at) + 1,
                    ":count": len(changes),
                    ":expires_at": _expiry(at, VERSIONS_KEPT_FOR),
                    ":none": [],
                    ":changes": list(changes),
                    ":full": FULL,
                },
                ReturnValues="UPDATED_NEW",
            )
        except client.exceptions.ConditionalCheckFailedException:
            return None
        return answer["Attributes"]

    def _trim(self, partition: str, version: Item, *, at: datetime) -> None:
        """Put the oldest changes into a chunk, and take them out of the list then, unless somebody else just did.

        A list that begins with the same number begins with the same changes: others only add to its end.
        """
        first, oldest = _first_number(version), version["changes"][:-LISTED_CHANGES][:MOST_TRIMMED]
        self._put_chunk(partition, first, oldest, at=at)
        # The last one first: DynamoDB does not mind, and who removes one after the other takes the right ones.
        places = ", ".join(f"changes[{place}]" for place in reversed(range(len(oldest))))
        succeeds(
            lambda: self.table.meta.client.update_item(
                TableName=self.table.name,
                Key=subscriber_version_key(partition),
                UpdateExpression=f"SET first_number = :next REMOVE {places}",
                ConditionExpression="first_number = :first",
                ExpressionAttributeValues={":first": first, ":next": first + len(oldest)},
            )
        )

    def _begin_anew(self, partition: str, changes: Sequence[Item], *, at: datetime) -> None:
        """Raise a version whose list is full, because many add to it at once or those who trim die.

        It has these changes alone then. The others are in no chunk for a moment; who looks now reads all rows.
        """
        before: Item = self.table.meta.client.update_item(
            TableName=self.table.name,
            Key=subscriber_version_key(partition),
            UpdateExpression=(
                "SET first_number = #version + :one, #version = #version + :count, expires_at = :expires_at, "
                "changes = :changes"
            ),
            ExpressionAttributeNames={"#version": "version"},
            ExpressionAttributeValues={
                ":one": 1,
                ":count": len(changes),
                ":expires_at": _expiry(at, VERSIONS_KEPT_FOR),
                ":changes": list(changes),
            },
            ReturnValues="ALL_OLD",
        )["Attributes"]
        self._put_chunk(partition, _first_number(before), before["changes"], at=at)

    def _put_chunk(self, partition: str, first: int, changes: Sequence[Item], *, at: datetime) -> None:
        chunk = {"first_number": first, "changes": list(changes), "expires_at": _expiry(at, CHUNKS_KEPT_FOR)}
        key = chunk_key(partition, first=first, last=first + len(changes) - 1)
        self.table.meta.client.put_item(TableName=self.table.name, Item=key | chunk)


def _is_to_be_trimmed(length: int, *, added: int) -> bool:
    """Say whether who made a list so long is to trim it: not all who add at once, and somebody later if it dies."""
    return length >= TRIMMED_FROM and length % LISTED_CHANGES < added


def _first_number(version: Item) -> int:
    return int(version["version"]) - len(version["changes"]) + 1


def _expiry(at: datetime, kept_for: timedelta) -> int:
    return round((at + kept_for).timestamp())
