"""Firehose: history events on their way to the lake."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.history.event import HistoryEvent

if TYPE_CHECKING:
    from mypy_boto3_firehose.client import FirehoseClient
    from mypy_boto3_firehose.type_defs import RecordTypeDef

BATCH_SIZE = 500  # PutRecordBatch takes at most so many records
TRIES = 3

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FirehoseHistory:
    """`History` over a delivery stream. What Firehose does not take is logged: an event never holds any body."""

    firehose: "FirehoseClient"
    stream: str

    def write(self, events: Sequence[HistoryEvent]) -> None:
        """Write events; never raises, since history must not stop a message."""
        for batch in _batches([event.to_json() + "\n" for event in events]):
            for line in self._still_refused(batch):
                logger.error("history event not taken by Firehose: %s", line.rstrip())

    def _still_refused(self, lines: list[str]) -> list[str]:
        for _ in range(TRIES):
            lines = self._refused(lines) if lines else []
        return lines

    def _refused(self, lines: list[str]) -> list[str]:
        records: list[RecordTypeDef] = [{"Data": line.encode()} for line in lines]
        try:
            answer = self.firehose.put_record_batch(DeliveryStreamName=self.stream, Records=records)
        except (ClientError, BotoCoreError):
            logger.exception("Firehose did not take %d history events", len(lines))
            return lines
        if not answer["FailedPutCount"]:
            return []
        results = zip(lines, answer["RequestResponses"], strict=True)
        return [line for line, result in results if "ErrorCode" in result]


def _batches(lines: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(lines), BATCH_SIZE):
        yield lines[start : start + BATCH_SIZE]
