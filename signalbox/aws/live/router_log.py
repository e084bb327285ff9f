"""The logs of topics as the router writes them: a batch's events, numbers and counters in one transaction.

A transaction costs twice the write units of its writes. It writes heads only where no other function writes to them at
the same time; where it fails nevertheless, for example because DynamoDB throttles one of the items, nothing is written,
and the router writes the heads first and then the events.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox.aws.exchange.routing_table import DynamoCounterWriter, DynamoHeads
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.shared.dynamodb import TRANSACTION_CONFLICT, reasons
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.routing.ports import BatchWrites
from signalbox.live.log.events import LoggedEvent
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

MAXIMUM_WRITES = 100  # of TransactWriteItems

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DynamoRouterLog:
    """`EventLog` over the tables `Live` and `Exchanges`; `counters` are those of this function instance alone."""

    log: DynamoTopicLog
    heads: DynamoHeads
    counters: DynamoCounterWriter

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:
        """Append events to the logs of their topics. Idempotent. Raises `ItemBusy`."""
        self.log.append(realm, events, live=live)

    def append_with(
        self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings, writes: BatchWrites
    ) -> bool:
        """Append events to the logs of their topics and store `writes`, all or nothing; return whether it was done."""
        items, keys = self.log.changes(realm, events, live)
        table = self.log.table
        changes: list[TransactWriteItemTypeDef] = [{"Update": self.heads.update(realm, one)} for one in writes.heads]
        changes += [{"Update": self.counters.update(one, some, writes.at)} for one, some in writes.counts.items()]
        changes += [{"Put": {"TableName": table.name, "Item": item}} for item in items]
        changes += [{"Delete": {"TableName": table.name, "Key": key}} for key in keys]
        if len(changes) > MAXIMUM_WRITES:
            return False
        try:
            table.meta.client.transact_write_items(TransactItems=changes)
        except ClientError as error:
            if not reasons(error) and error.response["Error"]["Code"] != TRANSACTION_CONFLICT:
                raise
            logger.warning("%d writes are made one after the other: %s", len(changes), sorted(set(reasons(error))))
            return False
        self.log.remember(realm, events)
        return True
