"""Firehose: history events on their way to the lake, and the queue where they wait when it does not take them."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.history.event import HistoryEvent

if TYPE_CHECKING:
    from mypy_boto3_firehose.client import FirehoseClient
    from mypy_boto3_firehose.type_defs import RecordTypeDef
    from mypy_boto3_sqs.client import SQSClient

# Firehose bills each record as a multiple of 5 KB, and an event has about 230 bytes: many go into one record, whose
# format conversion takes JSON documents one after another. PutRecordBatch takes 4 MiB.
RECORD_BYTES, BATCH_RECORDS = 100_000, 30
TRIES = 3
MESSAGE_BYTES = 1_000_000  # SQS takes 1 MiB

Record = list[str]  # the lines of one

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeliveryStream:
    """A delivery stream, which takes lines: each a JSON document with its end of line."""

    firehose: "FirehoseClient"
    name: str

    def refused(self, lines: Sequence[str]) -> list[str]:
        """Put lines, try again what is refused, and return those that Firehose never took."""
        records = list(_groups(lines, RECORD_BYTES))
        batches = [records[start : start + BATCH_RECORDS] for start in range(0, len(records), BATCH_RECORDS)]
        return [line for batch in batches for record in self._still_refused(batch) for line in record]

    def _still_refused(self, records: list[Record]) -> list[Record]:
        for _ in range(TRIES):
            records = self._put(records) if records else []
        return records

    def _put(self, records: list[Record]) -> list[Record]:
        batch: list[RecordTypeDef] = [{"Data": "".join(record).encode()} for record in records]
        try:
            answer = self.firehose.put_record_batch(DeliveryStreamName=self.name, Records=batch)
        except (ClientError, BotoCoreError):
            logger.exception("Firehose did not take %d records of history events", len(records))
            return records
        if not answer["FailedPutCount"]:
            return []
        results = zip(records, answer["RequestResponses"], strict=True)
        return [record for record, result in results if "ErrorCode" in result]


@dataclass(frozen=True, slots=True)
class Overflow:
    """The queue that keeps what Firehose did not take; many lines are one message. `sqs` gives a client of SQS."""

    sqs: Callable[[], "SQSClient"]
    queue_url: str

    def refused(self, lines: Sequence[str]) -> list[str]:
        """Send lines, and return those that SQS did not take either."""
        return [line for message in _groups(lines, MESSAGE_BYTES) for line in self._send(message)]

    def _send(self, lines: Sequence[str]) -> Sequence[str]:
        try:
            self.sqs().send_message(QueueUrl=self.queue_url, MessageBody="".join(lines))
        except (ClientError, BotoCoreError):
            logger.exception("the overflow queue did not take %d history events", len(lines))
            return lines
        return []


@dataclass(frozen=True, slots=True)
class FirehoseHistory:
    """`History` over a delivery stream and its overflow. What neither takes is logged: events never hold a body."""

    stream: DeliveryStream
    overflow: Overflow

    def write(self, events: Sequence[HistoryEvent]) -> None:
        """Write events; never raises, since history must not stop a message."""
        refused = self.stream.refused([event.to_json() + "\n" for event in events])
        for line in self.overflow.refused(refused):
            logger.error("history event taken by neither Firehose nor the overflow queue: %s", line.rstrip())


def _groups(lines: Sequence[str], limit: int) -> Iterator[list[str]]:
    """Return the lines in groups of at most `limit` bytes; a line that is longer is a group of its own."""
    group: list[str] = []
    room = limit
    for line in lines:
        size = len(line.encode())
        if group and size > room:
            yield group
            group, room = [], limit
        group.append(line)
        room -= size
    if group:
        yield group
