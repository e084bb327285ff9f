"""The DynamoDB store of the sent copies of unfinished publications, an item for each publication."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.aws.exchange.items import sent_key
from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import Update
from signalbox.exchange.routing.ports import AnyCopy, SentCopy
from signalbox.messages import MessageId

LONGEST_IN_QUEUE = timedelta(days=14)  # SQS deletes a message after this time at most


@dataclass(frozen=True, slots=True)
class DynamoSentCopies:
    """`SentCopies` over the table `Exchanges`. An item holds the digests of 20,000 queues and connections."""

    table: DynamoTable

    def add(self, copies: Iterable[SentCopy], *, now: datetime) -> None:
        """Record copies for as long as their publications may be received again."""
        digests: dict[MessageId, set[str]] = {}
        for copy in copies:
            digests.setdefault(copy.message_id, set()).add(_digest(copy))
        for message_id, sent in digests.items():
            self.table.write(Update(sent_key(message_id), sets=ttl(now + LONGEST_IN_QUEUE), adds={"copies": sent}))

    def left(self, copies: Sequence[AnyCopy]) -> Sequence[AnyCopy]:
        """Return the copies that are not recorded; only those of publications received before are looked up."""
        received_before = dict.fromkeys(copy.message_id for copy in copies if copy.attempt > 1)
        items = self.table.get_all([sent_key(one) for one in received_before], is_consistent=True)
        known = {digest for item in items for digest in item["copies"]}
        return [copy for copy in copies if _digest(copy) not in known] if known else copies


def _digest(copy: SentCopy) -> str:
    return hashlib.sha256(f"{copy.message_id}\n{copy.destination}".encode()).hexdigest()[:16]
