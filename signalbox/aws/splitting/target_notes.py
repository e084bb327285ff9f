"""The table `Splits`: samples of a split's temporary queues, and annotations of its target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.aws.shared.dynamodb import updated
from signalbox.aws.splitting.splits import read_item, split_key
from signalbox.queues import QueueName
from signalbox.splitting.model.observed_state import Sample, Timings
from signalbox.splitting.model.records import read_samples, samples_text, with_samples
from signalbox.splitting.model.target import Target

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

NOTE = "note:"


@dataclass(frozen=True, slots=True)
class DynamoSamples:
    """`Samples` over the table `Splits`; the writer must hold the target's lock."""

    table: "Table"
    timings: Timings = field(default_factory=Timings)

    def add(self, target: Target, samples: Mapping[QueueName, Sample]) -> None:
        """Add a sample for each queue; older samples are dropped unless the check for emptiness needs them."""
        kept = with_samples(self.of(target), samples, timings=self.timings)
        self.table.put_item(Item=split_key(target, "samples") | {"samples": samples_text(kept)})

    def of(self, target: Target) -> Mapping[QueueName, tuple[Sample, ...]]:
        """Return the samples of a split's temporary queues, oldest first."""
        item = read_item(self.table, split_key(target, "samples"))
        return read_samples(item["samples"]) if item else {}


@dataclass(frozen=True, slots=True)
class DynamoAnnotations:
    """`Annotations` over the table `Splits`: one attribute each, so that a single write keeps an existing text."""

    table: "Table"

    def of(self, target: Target) -> Mapping[str, str]:
        """Return all annotations of a target by name."""
        item = read_item(self.table, split_key(target, "notes")) or {}
        return {name.removeprefix(NOTE): text for name, text in item.items() if name.startswith(NOTE)}

    def put(self, target: Target, name: str, text: str) -> None:
        """Store an annotation unless one of that name exists."""
        self.table.update_item(
            Key=split_key(target, "notes"),
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
            "Key": split_key(target, "notes"),
            "UpdateExpression": f"REMOVE {', '.join(placeholders)}",
            "ExpressionAttributeNames": placeholders,
            "ConditionExpression": "attribute_exists(pk)",  # an update without effect would still create an item
        }
        updated(self.table, write)
