"""The copies that unfinished publications have sent, in the table `Exchanges`."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count, islice

from signalbox.aws.exchange.items import sent_key, sent_sort_key
from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import Update, attr
from signalbox.exchange.routing.ports import AnyCopy, SentCopy
from signalbox.messages import MessageId

LONGEST_IN_QUEUE = timedelta(days=14)  # SQS deletes a message after this time at most
DIGESTS_OF_WRITE = 10_000  # to an item that has fewer: with twice as many it has 340 KB, of 400 that are permitted


@dataclass(frozen=True, slots=True)
class DynamoSentCopies:
    """`SentCopies` over the table `Exchanges`: items with the digests of queues and connections."""

    table: DynamoTable

    def add(self, copies: Iterable[SentCopy], *, now: datetime) -> None:
        """Record copies for as long as their publications may be received again."""
        digests: dict[MessageId, dict[str, None]] = {}
        for copy in copies:
            digests.setdefault(copy.message_id, {})[_digest(copy)] = None
        for message_id, sent in digests.items():
            left = iter(sent)
            while some := set(islice(left, DIGESTS_OF_WRITE)):
                self._add(message_id, some, now)

    def _add(self, message_id: MessageId, digests: set[str], now: datetime) -> None:
        known = attr("copies")
        has_room = known.not_exists() | known.size().lt(DIGESTS_OF_WRITE)
        sets, adds = ttl(now + LONGEST_IN_QUEUE), {"copies": digests}
        keys = (sent_key(message_id, part) for part in count())
        next(key for key in keys if self.table.write(Update(key, sets=sets, adds=adds, condition=has_room)))

    def left(self, copies: Sequence[AnyCopy]) -> Sequence[AnyCopy]:
        """Return the copies that are not recorded; only those of publications received before are looked up."""
        keys = [sent_key(one) for one in dict.fromkeys(copy.message_id for copy in copies if copy.attempt > 1)]
        known = set[str]()
        part = 0
        while keys:
            items = [*self.table.get_all(keys, is_consistent=True)]
            known.update(*(item["copies"] for item in items))
            part += 1
            full = [item for item in items if len(item["copies"]) >= DIGESTS_OF_WRITE]
            keys = [{"pk": item["pk"], "sk": sent_sort_key(part)} for item in full]
        return [copy for copy in copies if _digest(copy) not in known] if known else copies


def _digest(copy: SentCopy) -> str:
    return hashlib.sha256(f"{copy.message_id}\n{copy.destination}".encode()).hexdigest()[:16]
