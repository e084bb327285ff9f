"""Writers of history events to Firehose, and to the overflow queue when Firehose refuses them."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.settings import BACKOFF
from signalbox.backoff import Backoff
from signalbox.history.event import HistoryEvent

if TYPE_CHECKING:
    from mypy_boto3_firehose.client import FirehoseClient
    from mypy_boto3_firehose.type_defs import RecordTypeDef
    from mypy_boto3_sqs.client import SQSClient

# Firehose bills each record in steps of 5 KB and an event has about 230 bytes, so a record contains many events; the
# format conversion reads consecutive JSON documents. PutRecordBatch accepts 500 records, of 4 MiB together.
RECORD_BYTES, CALL_BYTES = 100_000, 4_000_000
ATTEMPTS = 3  # what is left goes to the overflow queue
MESSAGE_BYTES = 1_000_000  # SQS accepts 1 MiB

Value = TypeVar("Value")
Record = list[str]  # the lines of a Firehose record

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeliveryStream:
    """A delivery stream for lines, each a JSON document with its line end."""

    firehose: "FirehoseClient"
    name: str
    backoff: Backoff = BACKOFF

    def put(self, lines: Sequence[str]) -> list[str]:
        """Put lines in at most three attempts, and return those that Firehose refused in all of them."""
        records = list(_groups(lines, RECORD_BYTES, size=_bytes))
        calls = _groups(records, CALL_BYTES, size=lambda record: sum(map(_bytes, record)))
        return [line for call in calls for record in self._still_refused(call) for line in record]

    def _still_refused(self, records: list[Record]) -> list[Record]:
        for _ in islice(self.backoff.attempts(), ATTEMPTS):
            records = self._put(records)
            if not records:
                break
        return records

    def _put(self, records: list[Record]) -> list[Record]:
        batch: list[RecordTypeDef] = [{"Data": "".join(record).encode()} for record in records]
        try:
            answer = self.firehose.put_record_batch(DeliveryStreamName=self.name, Records=batch)
        except (ClientError, BotoCoreError):
            logger.exception("Firehose refused %d records of history events", len(records))
            return records
        if not answer["FailedPutCount"]:
            return []
        results = zip(records, answer["RequestResponses"], strict=True)
        return [record for record, result in results if "ErrorCode" in result]


@dataclass(frozen=True, slots=True)
class Overflow:
    """The queue for lines that Firehose refused, many in one message. `sqs` returns an SQS client."""

    sqs: Callable[[], "SQSClient"]
    queue_url: str

    def put(self, lines: Sequence[str]) -> list[str]:
        """Send lines, and return those that SQS refused."""
        return [line for message in _groups(lines, MESSAGE_BYTES, size=_bytes) for line in self._send(message)]

    def _send(self, lines: Sequence[str]) -> Sequence[str]:
        try:
            self.sqs().send_message(QueueUrl=self.queue_url, MessageBody="".join(lines))
        except (ClientError, BotoCoreError):
            logger.exception("the overflow queue refused %d history events", len(lines))
            return lines
        return []


@dataclass(frozen=True, slots=True)
class FirehoseHistory:
    """`History` that writes to a delivery stream, then to the overflow queue, then to the log.

    Logging is safe because events never contain a message's body.
    """

    stream: DeliveryStream
    overflow: Overflow

    def write(self, events: Sequence[HistoryEvent]) -> None:
        """Write events. Never raises: a failure of history must not stop a message."""
        refused = self.stream.put([event.to_json() + "\n" for event in events])
        for line in self.overflow.put(refused):
            logger.error("history event refused by Firehose and by the overflow queue: %s", line.rstrip())


class NoHistory:
    """`History` of a stage that records no events."""

    def write(self, events: Sequence[HistoryEvent]) -> None:
        """Write nothing."""


def _bytes(line: str) -> int:
    return len(line.encode())


def _groups(values: Sequence[Value], limit: int, *, size: Callable[[Value], int]) -> Iterator[list[Value]]:
    """Yield values in groups of at most `limit` bytes; a larger one is a group of its own."""
    group: list[Value] = []
    room = limit
    for value in values:
        if group and size(value) > room:
            yield group
            group, room = [], limit
        group.append(value)
        room -= size(value)
    if group:
        yield group
