"""The logs of topics as the router writes them: a batch's events and numbers in one transaction.

A transaction costs twice the write units of its writes, so large events are written without one, after the heads. It
writes heads only where no other function writes to them at the same time; where it fails nevertheless, for example
because DynamoDB throttles one of the items, nothing is written, and the router writes the heads first and then the
events.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from botocore.exceptions import ClientError

from signalbox.aws.exchange.routing_table import DynamoHeads, head_update
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.stored_events import size_of
from signalbox.aws.shared.dynamodb import MAXIMUM_TRANSACTION, DynamoTable, ItemBusy, reasons, transact
from signalbox.aws.shared.expressions import Write
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.routing.ports import HeadChange
from signalbox.live.log.events import LoggedEvent
from signalbox.sarracenia.rights.names import ExchangeName

logger = logging.getLogger(__name__)

MAXIMUM_BYTES = 50_000  # of the events of a transaction


@dataclass(frozen=True, slots=True)
class DynamoRouterLog:
    """`EventLog` over the tables `Live` and `Exchanges`."""

    log: DynamoTopicLog
    heads: DynamoHeads

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:
        """Append events to the logs of their topics. Idempotent. Raises `ItemBusy`."""
        self.log.append(realm, events, live=live)

    def append_with(
        self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings, heads: Sequence[HeadChange]
    ) -> bool:
        """Store `heads` and append events to the logs of their topics; return whether it was done.

        If not, no event is appended. Raises `ItemBusy`.
        """
        logged = self.log.changes(realm, events, live)
        changes: list[tuple[DynamoTable, Write]] = [(self.heads.table, head_update(realm, one)) for one in heads]
        changes += [(self.log.table, one) for one in logged]
        if len(changes) > MAXIMUM_TRANSACTION or sum(map(size_of, logged)) > MAXIMUM_BYTES:
            # Here, since the caller would have the events compressed again.
            is_stored = all(self.heads.save(realm, one) for one in heads)
            if is_stored:
                self.log.write(realm, events, logged, live)
            return is_stored
        cause: object = "a condition does not hold"
        try:
            is_stored = all(transact(changes))
        except (ItemBusy, ClientError) as error:
            if isinstance(error, ClientError) and not reasons(error):
                raise
            is_stored, cause = False, error
        if is_stored:
            self.log.remember(realm, events, live)
        else:
            logger.warning("%d writes are made one after the other: %s", len(changes), cause)
        return is_stored
