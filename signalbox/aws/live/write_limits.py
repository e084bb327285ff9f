"""The KB that publishers have published, in the table `Live`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.aws.live.items import written_key
from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import Update

KEPT_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DynamoKilobyteCounter:
    """`KilobyteCounter` over the table `Live`: an item for each share and period."""

    table: DynamoTable
    now: Callable[[], datetime]

    def add(self, share: str, kilobytes: int, *, period: int) -> int:
        """Add to the KB of a period; return their sum."""
        sets = ttl(self.now() + KEPT_FOR)
        item = self.table.written(Update(written_key(share, period), sets=sets, adds={"kilobytes": kilobytes}))
        return int((item or {})["kilobytes"])
