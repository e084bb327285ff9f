"""The table `Splits`: the records of splits, and the registries of targets."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError

from signalbox.aws.shared.dynamodb import Item, every_item, milliseconds, moment, reasons, succeeds, transacted
from signalbox.errors import RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.model.records import (
    UnreadableRecord,
    read_record,
    record_text,
)
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import APPLIED, StoredRegistry, StoredSplit, UnreadableSplit

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import DeleteTypeDef, PutTypeDef, TransactWriteItemTypeDef

BY_KIND_INDEX = "by_kind"
SPLIT, REGISTRY = "split", "registry"
SPLIT_KEY = "split#"
BESIDE = ("samples", "notes")  # deleted with a split


class SplitTooLarge(RejectedError):
    """Raised when a split's record exceeds DynamoDB's item size: too many queues or sessions, or long filters."""


@dataclass(frozen=True, slots=True)
class DynamoSplits:
    """`Splits` over the table `Splits`: an item for the record, and one for each original that names its target."""

    table: "Table"

    def find(self, target: Target) -> StoredSplit | None:
        """Return the split of a target, or None. Raises `UnreadableRecord`."""
        item = read_item(self.table, split_key(target, SPLIT))
        return _stored(item) if item else None

    def of_queue(self, original: QueueName) -> StoredSplit | None:
        """Return the split that an original queue belongs to, or None. Raises `UnreadableRecord`."""
        item = read_item(self.table, _queue_key(original))
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
        beside = [split_key(target, sort_key) for sort_key in BESIDE]
        queues = [_queue_key(queue.original) for queue in stored.split.queues]
        record = self._delete(split_key(target, SPLIT))
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
class DynamoRegistries:
    """`Registries` over the table `Splits`."""

    table: "Table"

    def find(self, target: Target) -> StoredRegistry | None:
        """Return a target's registry, or None."""
        item = read_item(self.table, _registry_key(target))
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


def split_key(target: Target, sort_key: str) -> Item:
    """Return the key of an item of a target's split."""
    return {"pk": f"{SPLIT_KEY}{target}", "sk": sort_key}


def _queue_key(original: QueueName) -> Item:
    return {"pk": f"queue#{original}", "sk": "queue"}


def _registry_key(target: Target) -> Item:
    return {"pk": f"registry#{target}", "sk": "registry"}


def read_item(table: "Table", key: Item) -> Item | None:
    """Return the current item of a key, or None."""
    return table.get_item(Key=key, ConsistentRead=True).get("Item")


def _of_kind(table: "Table", kind: str) -> list[Item]:
    query = {"IndexName": BY_KIND_INDEX, "KeyConditionExpression": Key("kind").eq(kind)}
    return list(every_item(table.query, query))


def _item(stored: StoredSplit) -> Item:
    return split_key(stored.split.target, SPLIT) | {
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
