"""The table `Splits`: records of splits, locks, registries, samples, annotations and unfinished calls."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError

from signalbox.aws.shared.dynamodb import Item, every_item, milliseconds, moment, reasons, succeeds, transacted, updated
from signalbox.errors import RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.model.observed_state import QueueUse, Sample, Timings
from signalbox.splitting.model.records import (
    UnreadableRecord,
    read_record,
    read_samples,
    record_text,
    samples_text,
    with_samples,
)
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import APPLIED, StoredRegistry, StoredSplit, UnreadableSplit

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import ConditionBase
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import DeleteTypeDef, PutTypeDef, TransactWriteItemTypeDef

BY_KIND_INDEX = "by_kind"
SPLIT, REGISTRY = "split", "registry"
SPLIT_KEY = "split#"
BESIDE = ("samples", "notes")  # deleted with a split
NOTE = "note:"
# Longer than the closing of any queue takes, so that no record of a killed call expires before its end.
LEDGER_KEPT_FOR = timedelta(days=7)
# Longer than SQS keeps a message (14 days): a use that is forgotten earlier would let a queue count as never used.
USE_KEPT_FOR = timedelta(days=30)
LOCK_KEPT_FOR = timedelta(days=1)


class SplitTooLarge(RejectedError):
    """Raised when a split's record exceeds DynamoDB's item size: too many queues or sessions, or long filters."""


@dataclass(frozen=True, slots=True)
class DynamoSplits:
    """`Splits` over the table `Splits`: an item for the record, and one for each original that names its target."""

    table: "Table"

    def find(self, target: Target) -> StoredSplit | None:
        """Return the split of a target, or None. Raises `UnreadableRecord`."""
        item = _read(self.table, _key(target, SPLIT))
        return _stored(item) if item else None

    def of_queue(self, original: QueueName) -> StoredSplit | None:
        """Return the split that an original queue belongs to, or None. Raises `UnreadableRecord`."""
        item = _read(self.table, _queue_key(original))
        return self.find(Target.parse(item["target"])) if item else None

    def every(self) -> list[StoredSplit | UnreadableSplit]:
        """Return all splits, eventually consistent; an unreadable record does not hide the others."""
        return [_listed(item) for item in _of_kind(self.table, SPLIT)]

    def create(self, split: Split, *, documents: Sequence[object]) -> StoredSplit | None:
        """Store a new record; return None if the target has one or a queue belongs to another split."""
        stored = StoredSplit(split, 1, tuple(documents))
        items = [_item(stored), *(_queue_key(one.original) | {"target": str(split.target)} for one in split.queues)]
        is_stored = self._write([{"Put": self._put(item)} for item in items], split)
        return stored if is_stored else None

    def save(self, split: Split, *, replacing: StoredSplit) -> StoredSplit | None:
        """Store a changed record; return None if the stored record is not `replacing` any more."""
        stored = replace(replacing, split=split, version=replacing.version + 1)
        is_as_read = Attr("version").eq(replacing.version)
        try:
            is_stored = succeeds(lambda: self.table.put_item(Item=_item(stored), ConditionExpression=is_as_read))
        except ClientError as error:
            raise _ours(error, split) from error
        return stored if is_stored else None

    def forget(self, stored: StoredSplit) -> bool:
        """Delete a record with its samples and annotations; return whether the stored version was `stored`."""
        target = stored.split.target
        beside = [_key(target, sort_key) for sort_key in BESIDE]
        queues = [_queue_key(queue.original) for queue in stored.split.queues]
        record = self._delete(_key(target, SPLIT))
        record["ConditionExpression"] = "version = :version"
        record["ExpressionAttributeValues"] = {":version": stored.version}
        writes: list[TransactWriteItemTypeDef] = [{"Delete": record}]
        writes += [{"Delete": self._delete(key)} for key in beside + queues]
        return self._write(writes, stored.split)

    def _put(self, item: Item) -> "PutTypeDef":
        return {"TableName": self.table.name, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}

    def _delete(self, key: Item) -> "DeleteTypeDef":
        return {"TableName": self.table.name, "Key": key}

    def _write(self, writes: "Sequence[TransactWriteItemTypeDef]", split: Split) -> bool:
        """Write all or nothing; return whether the conditions held."""
        try:
            return all(transacted(self.table, writes))
        except ClientError as error:
            raise _ours(error, split) from error


@dataclass(frozen=True, slots=True)
class DynamoLocks:
    """`Locks` over the table `Splits`."""

    table: "Table"

    def acquire(self, target: Target, *, holder: str, now: datetime, until: datetime) -> bool:
        """Acquire or extend the lock of a target; return whether `holder` has it."""
        item = _key(target, "lock") | {
            "holder": holder,
            "until": milliseconds(until),
            "expires_at": round((until + LOCK_KEPT_FOR).timestamp()),
        }
        is_free = Attr("pk").not_exists() | Attr("until").lte(milliseconds(now)) | Attr("holder").eq(holder)
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=is_free))

    def release(self, target: Target, *, holder: str) -> None:
        """Release the lock if `holder` has it."""
        is_ours = Attr("holder").eq(holder)
        succeeds(lambda: self.table.delete_item(Key=_key(target, "lock"), ConditionExpression=is_ours))


@dataclass(frozen=True, slots=True)
class DynamoRegistries:
    """`Registries` over the table `Splits`."""

    table: "Table"

    def find(self, target: Target) -> StoredRegistry | None:
        """Return a target's registry, or None."""
        item = _read(self.table, _registry_key(target))
        return _registry(item) if item else None

    def every(self) -> list[StoredRegistry]:
        """Return all registries, eventually consistent."""
        return [_registry(item) for item in _of_kind(self.table, REGISTRY)]

    def put(self, registry: StoredRegistry) -> None:
        """Store a registry, replacing an older one."""
        item = {
            "kind": REGISTRY,
            "target": str(registry.target),
            "documents": _json(registry.documents),
            "applied_at": milliseconds(registry.applied_at),
        }
        if registry.source != APPLIED:
            item["source"] = registry.source
        self.table.put_item(Item=_registry_key(registry.target) | item)

    def remove(self, target: Target) -> None:
        """Delete a target's registry; a missing one is no error."""
        self.table.delete_item(Key=_registry_key(target))


@dataclass(frozen=True, slots=True)
class DynamoSamples:
    """`Samples` over the table `Splits`; the writer must hold the target's lock."""

    table: "Table"
    timings: Timings = field(default_factory=Timings)

    def add(self, target: Target, samples: Mapping[QueueName, Sample]) -> None:
        """Add a sample for each queue; older samples are dropped unless the check for emptiness needs them."""
        kept = with_samples(self.of(target), samples, timings=self.timings)
        self.table.put_item(Item=_key(target, "samples") | {"samples": samples_text(kept)})

    def of(self, target: Target) -> Mapping[QueueName, tuple[Sample, ...]]:
        """Return the samples of a split's temporary queues, oldest first."""
        item = _read(self.table, _key(target, "samples"))
        return read_samples(item["samples"]) if item else {}


@dataclass(frozen=True, slots=True)
class DynamoAnnotations:
    """`Annotations` over the table `Splits`: one attribute each, so that a single write keeps an existing text."""

    table: "Table"

    def of(self, target: Target) -> Mapping[str, str]:
        """Return all annotations of a target by name."""
        item = _read(self.table, _key(target, "notes")) or {}
        return {name.removeprefix(NOTE): text for name, text in item.items() if name.startswith(NOTE)}

    def put(self, target: Target, name: str, text: str) -> None:
        """Store an annotation unless one of that name exists."""
        self.table.update_item(
            Key=_key(target, "notes"),
            UpdateExpression="SET #note = if_not_exists(#note, :text)",
            ExpressionAttributeNames={"#note": NOTE + name},
            ExpressionAttributeValues={":text": text},
        )

    def remove(self, target: Target, names: Sequence[str]) -> None:
        """Delete annotations; names that do not exist are ignored."""
        if not names:  # DynamoDB refuses an expression without names
            return
        placeholders = {f"#note{number}": NOTE + name for number, name in enumerate(names)}
        write = {
            "Key": _key(target, "notes"),
            "UpdateExpression": f"REMOVE {', '.join(placeholders)}",
            "ExpressionAttributeNames": placeholders,
            "ConditionExpression": "attribute_exists(pk)",  # an update without effect would still create an item
        }
        updated(self.table, write)


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
        item = _read(self.table, _use_key(name))
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


def _key(target: Target, sort_key: str) -> Item:
    return {"pk": f"{SPLIT_KEY}{target}", "sk": sort_key}


def _queue_key(original: QueueName) -> Item:
    return {"pk": f"queue#{original}", "sk": "queue"}


def _registry_key(target: Target) -> Item:
    return {"pk": f"registry#{target}", "sk": "registry"}


def _call_key(original: QueueName, call_id: str) -> Item:
    return {"pk": f"ledger#{original}", "sk": call_id}


def _read(table: "Table", key: Item) -> Item | None:
    return table.get_item(Key=key, ConsistentRead=True).get("Item")


def _of_kind(table: "Table", kind: str) -> list[Item]:
    query = {"IndexName": BY_KIND_INDEX, "KeyConditionExpression": Key("kind").eq(kind)}
    return list(every_item(table.query, query))


def _item(stored: StoredSplit) -> Item:
    return _key(stored.split.target, SPLIT) | {
        "kind": SPLIT,
        "record": record_text(stored.split),
        "documents": _json(stored.documents),
        "version": stored.version,
    }


def _stored(item: Item) -> StoredSplit:
    return StoredSplit(read_record(item["record"]), int(item["version"]), tuple(json.loads(item["documents"])))


def _listed(item: Item) -> StoredSplit | UnreadableSplit:
    try:
        return _stored(item)
    except UnreadableRecord as error:
        return UnreadableSplit(item["pk"].removeprefix(SPLIT_KEY), str(error))


def _registry(item: Item) -> StoredRegistry:
    documents = tuple(json.loads(item["documents"]))
    source = str(item.get("source", APPLIED))
    return StoredRegistry(Target.parse(item["target"]), documents, moment(item["applied_at"]), source)


def _json(documents: Sequence[object]) -> str:
    return json.dumps(list(documents), separators=(",", ":"))


def _ours(error: ClientError, split: Split) -> Exception:
    """Return `SplitTooLarge` for a write that exceeds the item size, otherwise the error itself."""
    details = error.response["Error"]
    if {details["Code"], *reasons(error)} & {"ValidationException", "ValidationError"}:
        size = f"{len(split.queues)} queues, {len(split.sessions)} sessions"
        return SplitTooLarge(f"DynamoDB refuses the record of {split.target} with {size}: {details['Message']}")
    return error
