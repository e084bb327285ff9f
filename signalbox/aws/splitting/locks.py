"""The table `Splits`: locks of targets, unfinished calls, and uses of temporary queues."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key

from signalbox.aws.shared.dynamodb import Item, every_item, milliseconds, moment, succeeds
from signalbox.aws.splitting.splits import read_item, split_key
from signalbox.queues import QueueName
from signalbox.splitting.model.observed_state import QueueUse
from signalbox.splitting.model.target import Target

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import ConditionBase
    from mypy_boto3_dynamodb.service_resource import Table

# Longer than the closing of any queue takes, so that no record of a killed call expires before its end.
LEDGER_KEPT_FOR = timedelta(days=7)
# Longer than SQS keeps a message (14 days): a use that is forgotten earlier would let a queue count as never used.
USE_KEPT_FOR = timedelta(days=30)
LOCK_KEPT_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DynamoLocks:
    """`Locks` over the table `Splits`."""

    table: "Table"

    def acquire(self, target: Target, *, holder: str, now: datetime, until: datetime) -> bool:
        """Acquire or extend the lock of a target; return whether `holder` has it."""
        item = split_key(target, "lock") | {
            "holder": holder,
            "until": milliseconds(until),
            "expires_at": round((until + LOCK_KEPT_FOR).timestamp()),
        }
        is_free = Attr("pk").not_exists() | Attr("until").lte(milliseconds(now)) | Attr("holder").eq(holder)
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=is_free))

    def release(self, target: Target, *, holder: str) -> None:
        """Release the lock if `holder` has it."""
        is_ours = Attr("holder").eq(holder)
        succeeds(lambda: self.table.delete_item(Key=split_key(target, "lock"), ConditionExpression=is_ours))


@dataclass(frozen=True, slots=True)
class DynamoLedger:
    """`Ledger` over the table `Splits`: an item for each unfinished call."""

    table: "Table"

    def begin(self, original: QueueName, call_id: str, *, now: datetime) -> None:
        """Record the start of a call."""
        times = {"began_at": milliseconds(now), "expires_at": round((now + LEDGER_KEPT_FOR).timestamp())}
        self.table.put_item(Item=_call_key(original, call_id) | times)

    def finish(self, original: QueueName, call_id: str) -> None:
        """Delete the record of a call."""
        self.table.delete_item(Key=_call_key(original, call_id))

    def unfinished(self, original: QueueName, *, since: datetime) -> int:
        """Return the number of calls that began at or after `since` and have not finished."""
        query = {
            "KeyConditionExpression": Key("pk").eq(_call_key(original, "")["pk"]),
            "FilterExpression": Attr("began_at").gte(milliseconds(since)),
            "ConsistentRead": True,
        }
        return sum(1 for _ in every_item(self.table.query, query))


@dataclass(frozen=True, slots=True)
class DynamoQueueUses:
    """`QueueUses` over the table `Splits`: an item for each temporary queue that was used or closed."""

    table: "Table"

    def extend(self, name: QueueName, *, until: datetime) -> bool:
        """Record that calls which begin before `until` may send messages to a queue; return False if it is closed."""
        is_earlier = Attr("is_closed").eq(value=False) & Attr("until").lt(milliseconds(until))
        condition = Attr("pk").not_exists() | is_earlier
        if self._put(name, QueueUse(until), condition=condition, kept_from=until):
            return True
        return not self._of(name).is_closed

    def close(self, name: QueueName, *, seen: QueueUse, now: datetime) -> bool:
        """Close a queue if its recorded use is still `seen`; return whether it is closed."""
        known = Attr("until").eq(milliseconds(seen.until)) if seen.until else Attr("until").not_exists()
        return self._put(name, QueueUse(seen.until, is_closed=True), condition=known, kept_from=now)

    def of(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueUse]:
        """Return the recorded use of each queue."""
        return {name: self._of(name) for name in names}

    def _of(self, name: QueueName) -> QueueUse:
        item = read_item(self.table, _use_key(name))
        if item is None:
            return QueueUse()
        return QueueUse(moment(item["until"]) if "until" in item else None, is_closed=item["is_closed"])

    def _put(self, name: QueueName, use: QueueUse, *, condition: "ConditionBase", kept_from: datetime) -> bool:
        expires_at = round((kept_from + USE_KEPT_FOR).timestamp())
        item = _use_key(name) | {"is_closed": use.is_closed, "expires_at": expires_at}
        if use.until is not None:
            item["until"] = milliseconds(use.until)
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=condition))


def _use_key(name: QueueName) -> Item:
    return {"pk": f"use#{name}", "sk": "use"}


def _call_key(original: QueueName, call_id: str) -> Item:
    return {"pk": f"ledger#{original}", "sk": call_id}
