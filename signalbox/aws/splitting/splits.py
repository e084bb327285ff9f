"""The table `Splits`: the records of splits, and the registries of targets."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from botocore.exceptions import ClientError

from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment, reasons
from signalbox.aws.shared.expressions import IS_NEW, Delete, Item, Put, Update, Write, attr
from signalbox.forms import Form, Forms
from signalbox.queues import QueueName
from signalbox.splitting.model.records import UnreadableRecord, documents_text, read_record, record_text
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import SplitTooLarge, StoredRegistry, StoredSplit, UnreadableSplit

SPLIT, REGISTRY = "split", "registry"
SPLIT_KEY = "split#"
LISTED = "listed"
OTHER_ITEMS = ("samples", "notes", LISTED)  # deleted with a split
DOCUMENTS = Form(documents_text, lambda text: tuple(json.loads(text)))
REGISTRY_RECORD = Forms(
    {Target: Form(str, Target.parse), Sequence[object]: DOCUMENTS, datetime: Form(milliseconds, moment)}
).record(StoredRegistry, sparse=["source"])


@dataclass(frozen=True, slots=True)
class DynamoSplits:
    """`Splits` over the table `Splits`: an item for the record, and one for each original that names its target.

    A record may have 400 KB. The index lists a small item of it, with a version that is never lower than the record's.
    """

    table: DynamoTable

    def find(self, target: Target) -> StoredSplit | None:
        """Return the split of a target, or None. Raises `UnreadableRecord`."""
        item = self.table.get(split_key(target, SPLIT))
        return _stored(item) if item else None

    def of_queue(self, original: QueueName, *, known: StoredSplit | None = None) -> StoredSplit | None:
        """Return the split that an original queue belongs to, or None. Raises `UnreadableRecord`.

        A split that is `known` is read only if it has changed.
        """
        listed = self.table.get(split_key(known.split.target, LISTED)) if known else None
        if known and listed and listed["version"] == known.version:
            return known
        item = self.table.get(_queue_key(original))
        return self.find(Target.parse(item["target"])) if item else None

    def every(self) -> list[StoredSplit | UnreadableSplit]:
        """Return all splits, eventually consistent; an unreadable record does not hide the others."""
        keys = [{"pk": item["pk"], "sk": SPLIT} for item in self.table.of_kind(SPLIT)]
        return [_listed(item) for item in self.table.get_all(keys, is_consistent=False)]

    def create(self, split: Split, *, documents: Sequence[object]) -> StoredSplit | None:
        """Store a new record; return None if the target has one or a queue belongs to another split."""
        # No later split of the target has a version of this one.
        stored = StoredSplit(split, milliseconds(split.since), tuple(documents))
        listed = split_key(split.target, LISTED) | {"kind": SPLIT, "version": stored.version}
        queues = [_queue_key(one.original) | {"target": str(split.target)} for one in split.queues]
        items = [_item(stored), listed, *queues]
        return stored if self._write(split, *(Put(item, IS_NEW) for item in items)) else None

    def save(self, split: Split, *, replacing: StoredSplit) -> StoredSplit | None:
        """Store a changed record; return None if the stored record is not `replacing` any more."""
        stored = replace(replacing, split=split, version=replacing.version + 1)
        key, is_earlier = split_key(split.target, LISTED), attr("version").lt(stored.version)
        # Written before the record: a later reader has read this version, or reads the record.
        self.table.write(Update(key, sets={"version": stored.version}, condition=is_earlier))
        with _translated(split):
            return stored if self.table.write(Put(_item(stored), attr("version").eq(replacing.version))) else None

    def forget(self, stored: StoredSplit) -> bool:
        """Delete a record with its samples and annotations; return whether the stored version was `stored`."""
        target = stored.split.target
        beside = [split_key(target, sort_key) for sort_key in OTHER_ITEMS]
        queues = [_queue_key(queue.original) for queue in stored.split.queues]
        record = Delete(split_key(target, SPLIT), attr("version").eq(stored.version))
        return self._write(stored.split, record, *map(Delete, beside + queues))

    def _write(self, split: Split, *writes: Write) -> bool:
        """Write all or nothing; return whether the conditions held."""
        with _translated(split):
            return all(self.table.transact(*writes))


@dataclass(frozen=True, slots=True)
class DynamoRegistries:
    """`Registries` over the table `Splits`."""

    table: DynamoTable

    def find(self, target: Target) -> StoredRegistry | None:
        """Return a target's registry, or None."""
        item = self.table.get(_registry_key(target))
        return REGISTRY_RECORD.read(item) if item else None

    def every(self) -> list[StoredRegistry]:
        """Return all registries, eventually consistent."""
        return list(map(REGISTRY_RECORD.read, self.table.of_kind(REGISTRY)))

    def put(self, registry: StoredRegistry) -> None:
        """Store a registry, replacing an older one."""
        item = {"kind": REGISTRY} | REGISTRY_RECORD.write(registry)
        self.table.write(Put(_registry_key(registry.target) | item))

    def remove(self, target: Target) -> None:
        """Delete a target's registry; a missing one is no error."""
        self.table.write(Delete(_registry_key(target)))


def split_key(target: Target, sort_key: str) -> Item:
    """Return the key of an item of a target's split."""
    return {"pk": f"{SPLIT_KEY}{target}", "sk": sort_key}


def _queue_key(original: QueueName) -> Item:
    return {"pk": f"queue#{original}", "sk": "queue"}


def _registry_key(target: Target) -> Item:
    return {"pk": f"registry#{target}", "sk": "registry"}


def _item(stored: StoredSplit) -> Item:
    return split_key(stored.split.target, SPLIT) | {
        "record": record_text(stored.split),
        "documents": documents_text(stored.documents),
        "version": stored.version,
    }


def _stored(item: Item) -> StoredSplit:
    return StoredSplit(read_record(item["record"]), int(item["version"]), tuple(json.loads(item["documents"])))


def _listed(item: Item) -> StoredSplit | UnreadableSplit:
    try:
        return _stored(item)
    except UnreadableRecord as error:
        return UnreadableSplit(item["pk"].removeprefix(SPLIT_KEY), str(error))


@contextmanager
def _translated(split: Split) -> Iterator[None]:
    """Raise `SplitTooLarge` for a write that exceeds the item size."""
    try:
        yield
    except ClientError as error:
        details = error.response["Error"]
        if {details["Code"], *reasons(error)}.isdisjoint(("ValidationException", "ValidationError")):
            raise
        size = f"{len(split.queues)} queues, {len(split.sessions)} sessions"
        raise SplitTooLarge(
            f"DynamoDB refuses the record of {split.target} with {size}: {details['Message']}"
        ) from error
