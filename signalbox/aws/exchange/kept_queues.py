"""The mark in a declared queue's record by which the router keeps its messages."""

from dataclasses import dataclass
from datetime import timedelta

from signalbox.aws.exchange.items import KEEP_SECONDS, record_key
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.expressions import EXISTS, Update, attr
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import ResourceKind, ResourceRef


@dataclass(frozen=True, slots=True)
class DynamoKeptQueues:
    """The records of declared queues in the table `Exchanges`."""

    table: DynamoTable

    def mark(self, queue: DeclaredName, keep_for: timedelta | None) -> bool:
        """Set or remove the mark; return whether the queue exists.

        The version grows as with every change of the record, so that no concurrent change is lost.
        """
        sets = {} if keep_for is None else {KEEP_SECONDS: int(keep_for.total_seconds())}
        removes = [attr(KEEP_SECONDS)] if keep_for is None else []
        key = record_key(ResourceRef(ResourceKind.QUEUE, queue))
        return self.table.write(Update(key, sets=sets, removes=removes, adds={"version": 1}, condition=EXISTS))

    def is_marked(self, queue: DeclaredName) -> bool:
        """Return whether a queue exists and is marked: a queue that is declared again is not."""
        return KEEP_SECONDS in (self.table.get(record_key(ResourceRef(ResourceKind.QUEUE, queue))) or {})
