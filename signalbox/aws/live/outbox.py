"""The queue of outboxes: a message group for each connection, in which what is put twice is there once."""

import hashlib
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.errors import look
from signalbox.exchange.model.routing_ports import ParallelMap, serial_map
from signalbox.live.outbox.items import OutboxItem, item_text
from signalbox.live.router.distributor import Posting
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.codec import size_bytes
from signalbox.messages import MAXIMUM_BYTES, Message
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

logger = logging.getLogger(__name__)

_Placed = tuple[int, Posting]


@dataclass(frozen=True, slots=True)
class SqsOutboxes:
    """`Outboxes` and `OutboxSender`."""

    sqs: "SQSClient"
    queue_url: str
    parallel_map: ParallelMap = serial_map

    def put(self, connection: ConnectionId, items: Sequence[OutboxItem]) -> None:
        """Put items behind what is there; one that is put again soon is there once. Raises `EffectFailed`."""
        for item in items:  # one call each: of those in one call, one may fail that was before another
            posting = Posting(connection, item.item_id, item_text(item))
            with look("the queue of outboxes"):
                self.sqs.send_message(QueueUrl=self.queue_url, **_message(posting))  # type: ignore[arg-type]  # texts

    def send(self, postings: Sequence[Posting]) -> Collection[int]:
        """Put each into its connection's outbox; return the places of those that failed. Of none is known the order."""
        calls = list(_calls(postings))
        return [place for failed in self.parallel_map(self._failed, calls) for place in failed]

    def _failed(self, call: Sequence[_Placed]) -> list[int]:
        entries = [{"Id": str(place), **_message(posting)} for place, posting in call]
        try:
            answer = self.sqs.send_message_batch(QueueUrl=self.queue_url, Entries=entries)  # type: ignore[arg-type]
        except (ClientError, BotoCoreError):
            logger.exception("%d items were not put into outboxes", len(call))
            return [place for place, _ in call]
        for failure in answer.get("Failed", []):
            logger.warning("an item was not put into an outbox: %s %s", failure["Code"], failure.get("Message"))
        return [int(failure["Id"]) for failure in answer.get("Failed", [])]


@dataclass(frozen=True, slots=True)
class SqsOutboxQueue:
    """The same queue, as whoever empties it has it."""

    sqs: "SQSClient"
    queue_url: str

    def show_again(self, messages: Sequence[Message], *, after: timedelta) -> None:
        """Have received messages received again soon, and not when their visibility ends; ten at most."""
        entries = [
            {
                "Id": str(place),
                "ReceiptHandle": message.document["ReceiptHandle"],
                "VisibilityTimeout": round(after.total_seconds()),
            }
            for place, message in enumerate(messages)
        ]
        try:
            self.sqs.change_message_visibility_batch(QueueUrl=self.queue_url, Entries=entries)  # type: ignore[arg-type]
        except (ClientError, BotoCoreError):
            logger.exception("%d items come again when their visibility ends", len(entries))


def _message(posting: Posting) -> dict[str, str]:
    deduplication = hashlib.sha256(f"{posting.connection}\n{posting.item_id}".encode(errors="surrogatepass"))
    return {
        "MessageBody": posting.text,
        "MessageGroupId": posting.connection,
        "MessageDeduplicationId": deduplication.hexdigest(),
    }


def _calls(postings: Sequence[Posting]) -> Iterator[list[_Placed]]:
    call: list[_Placed] = []
    size = 0
    for place, posting in enumerate(postings):
        more = size_bytes(posting.text)
        if call and (len(call) == MAXIMUM_ENTRIES or size + more > MAXIMUM_BYTES):
            yield call
            call, size = [], 0
        call.append((place, posting))
        size += more
    if call:
        yield call
