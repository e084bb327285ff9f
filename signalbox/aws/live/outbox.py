"""The FIFO queue of outboxes: one message group per connection, with content de-duplicated by item id."""

import hashlib
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.batch_calls import send_batch
from signalbox.aws.shared.errors import translate_read_errors
from signalbox.aws.shared.settings import BACKOFF
from signalbox.backoff import Backoff
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.items import OutboxItem, OutboxMessage, item_body
from signalbox.live.wamp.codec import size_bytes
from signalbox.messages import MAXIMUM_BYTES
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

logger = logging.getLogger(__name__)

_Indexed = tuple[int, OutboxMessage]


@dataclass(frozen=True, slots=True)
class SqsOutboxes:
    """Implementation of `Outboxes` and `OutboxSender`."""

    sqs: "SQSClient"
    queue_url: str
    parallel_map: ParallelMap = serial_map
    backoff: Backoff = BACKOFF

    def put(self, connection: ConnectionId, items: Sequence[OutboxItem]) -> None:
        """Append items to an outbox; an item that is put twice within five minutes is stored once.

        Raises `EffectFailed`.
        """
        for item in items:  # one call each: in a batch, an entry may fail and a later one succeed
            message = OutboxMessage(connection, item.item_id, item_body(item))
            with translate_read_errors("the queue of outboxes"):
                self.sqs.send_message(QueueUrl=self.queue_url, **_entry(message))  # type: ignore[arg-type]  # texts

    def send(self, messages: Sequence[OutboxMessage]) -> Collection[int]:
        """Send messages in no particular order; return the indexes of those that failed."""
        calls = list(_calls(messages))
        return [index for failed in self.parallel_map(self._failed, calls) for index in failed]

    def _failed(self, call: Sequence[_Indexed]) -> list[int]:
        entries = [{"Id": str(index), **_entry(message)} for index, message in call]
        try:
            _, failures = send_batch(self.sqs, self.queue_url, entries, backoff=self.backoff)  # type: ignore[arg-type]
        except (ClientError, BotoCoreError):
            logger.exception("%d items were not sent to outboxes", len(call))
            return [index for index, _ in call]
        for failure in failures:
            logger.warning("an item was not sent to an outbox: %s %s", failure["Code"], failure.get("Message"))
        return [int(failure["Id"]) for failure in failures]


def _entry(message: OutboxMessage) -> dict[str, str]:
    deduplication = hashlib.sha256(f"{message.connection}\n{message.item_id}".encode(errors="surrogatepass"))
    return {
        "MessageBody": message.text,
        "MessageGroupId": message.connection,
        "MessageDeduplicationId": deduplication.hexdigest(),
    }


def _calls(messages: Sequence[OutboxMessage]) -> Iterator[list[_Indexed]]:
    call: list[_Indexed] = []
    size = 0
    for index, message in enumerate(messages):
        message_size = size_bytes(message.text)
        if call and (len(call) == MAXIMUM_ENTRIES or size + message_size > MAXIMUM_BYTES):
            yield call
            call, size = [], 0
        call.append((index, message))
        size += message_size
    if call:
        yield call
