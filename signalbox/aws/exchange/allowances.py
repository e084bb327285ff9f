"""The amounts that count in allowances, in the tables `Exchanges` and `Live`."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import Update

KEPT_FOR = timedelta(hours=1)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DynamoAllowanceCounter:
    """`AllowanceCounter` over a table: an item for each share of a kind and period.

    The client of the table has one attempt: messages do not wait for a counter that DynamoDB throttles.
    """

    table: DynamoTable
    kind: str
    now: Callable[[], datetime]

    def add(self, share: str, amount: int, *, period: int) -> int:
        """Add to the amount of a period, and return the sum; log a failure, and return 0."""
        key, until = {"pk": f"{self.kind}#{share}", "sk": str(period)}, ttl(self.now() + KEPT_FOR)
        try:
            item = self.table.written(Update(key, sets=until, adds={"amount": amount})) or {}
        except (ClientError, BotoCoreError) as error:
            logger.warning("the %s of %s are not counted: %s", self.kind, share, error)
            return 0
        return int(item["amount"])
