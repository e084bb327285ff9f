"""The table `Splits`: samples of a split's temporary queues, and annotations of its target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.expressions import EXISTS, Put, Update, attr
from signalbox.aws.splitting.splits import split_key
from signalbox.queues import QueueName
from signalbox.splitting.model.observed_state import Sample, Timings
from signalbox.splitting.model.records import read_samples, samples_text, with_samples
from signalbox.splitting.model.target import Target

NOTE = "note:"


@dataclass(frozen=True, slots=True)
class DynamoSamples:
    """`Samples` over the table `Splits`; the writer must hold the target's lock."""

    table: DynamoTable
    timings: Timings = field(default_factory=Timings)

    def add(self, target: Target, samples: Mapping[QueueName, Sample]) -> Mapping[QueueName, tuple[Sample, ...]]:
        """Add a sample for each queue of a split, and return the samples that are kept, oldest first."""
        item = self.table.get(split_key(target, "samples"))
        kept = with_samples(read_samples(item["samples"]) if item else {}, samples, timings=self.timings)
        self.table.write(Put(split_key(target, "samples") | {"samples": samples_text(kept)}))
        return kept


@dataclass(frozen=True, slots=True)
class DynamoAnnotations:
    """`Annotations` over the table `Splits`: one attribute each, so that a single write keeps an existing text."""

    table: DynamoTable

    def of(self, target: Target) -> Mapping[str, str]:
        """Return all annotations of a target by name."""
        item = self.table.get(split_key(target, "notes")) or {}
        return {name.removeprefix(NOTE): text for name, text in item.items() if name.startswith(NOTE)}

    def put(self, target: Target, name: str, text: str) -> None:
        """Store an annotation unless one of that name exists."""
        note = NOTE + name
        self.table.write(Update(split_key(target, "notes"), sets={note: attr(note).otherwise(text)}))

    def remove(self, target: Target, names: Sequence[str]) -> None:
        """Delete annotations; names that do not exist are ignored."""
        if names:  # DynamoDB refuses an expression without names, and an update without effect would create an item
            removes = [attr(NOTE + name) for name in names]
            self.table.write(Update(split_key(target, "notes"), removes=removes, condition=EXISTS))
