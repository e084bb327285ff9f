"""Counters of exchanges and queues, and the version of all rights by which instances notice old caches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.aws.exchange.items import MINUTE, minute_key, minute_of, partition, rights_version_key
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.expressions import Update, attr
from signalbox.exchange.model.records import MinuteCounts, ResourceRef

AFTER_ALL_DIGITS = MINUTE + ":"


@dataclass(frozen=True, slots=True)
class DynamoCounters:
    """`Counters` over the table `Exchanges`, to which the router adds."""

    table: DynamoTable

    def since(self, resource: ResourceRef, moment: datetime) -> Sequence[MinuteCounts]:
        """Return the counters from the minute of `moment` on, oldest first, without empty minutes."""
        minutes = attr("pk").eq(partition(resource)) & attr("sk").between(minute_key(moment), AFTER_ALL_DIGITS)
        return list(map(minute_of, self.table.query(minutes, is_consistent=False)))


@dataclass(frozen=True, slots=True)
class DynamoRightsVersion:
    """`RightsVersion`: a number in the table `Exchanges`."""

    table: DynamoTable

    def increment(self) -> None:
        """Raise the version. The rights must have been written before."""
        self.table.write(Update(rights_version_key(), adds={"version": 1}))
