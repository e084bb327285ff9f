"""The DynamoDB stores of copies: those that unfinished publications have sent, and the numbers of all in a period."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count, islice

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.exchange.items import sent_key, sent_sort_key
from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import Update, attr
from signalbox.exchange.routing.ports import AnyCopy, SentCopy
from signalbox.messages import MessageId

COPIES_KEPT_FOR = timedelta(hours=1)
LONGEST_IN_QUEUE = timedelta(days=14)  # SQS deletes a message after this time at most
DIGESTS_OF_WRITE = 10_000  # to an item that has fewer: with twice as many it has 340 KB, of 400 that are permitted

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DynamoCopyCounter:
    """`CopyCounter` over the table `Exchanges`: an item for each pair and period."""

    table: DynamoTable
    now: Callable[[], datetime]

    def add(self, pair: str, copies: int, *, period: int) -> int:
        """Add to the copies of a pair, and return their sum; log a failure, and return 0."""
        key, until = {"pk": f"copies#{pair}", "sk": str(period)}, ttl(self.now() + COPIES_KEPT_FOR)
        try:
            item = self.table.written(Update(key, sets=until, adds={"copies": copies})) or {}
        except (ClientError, BotoCoreError) as error:
            logger.warning("the copies of %s are not counted: %s", pair, error)
            return 0
        return int(item["copies"])


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
