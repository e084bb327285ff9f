"""Batch sending to queues on SQS."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.batch_calls import send_batch
from signalbox.aws.shared.errors import SERVER_ERROR, reason
from signalbox.aws.shared.messages import batch_entry
from signalbox.backoff import Backoff
from signalbox.errors import EffectFailed
from signalbox.messages import outgoing
from signalbox.sending import Batch, Delivery

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

# Codes of SQS that reject the message itself; every other code concerns the queue, its key or the moment.
OF_THE_MESSAGE = frozenset(
    {
        "BatchRequestTooLong",
        "InvalidAttributeValue",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "MissingParameter",
        "UnsupportedOperation",
    }
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SqsQueueSender:
    """`QueueSender`; `url_prefix` is a queue URL up to the name: all queues are in one account and region."""

    sqs: "SQSClient"
    url_prefix: str
    backoff: Backoff = BACKOFF

    def send(self, batch: Batch) -> Sequence[tuple[Delivery, str | None]]:
        """Send a batch; return the failed deliveries, each with SQS's reason if the failure is permanent, else None.

        Failures that no message caused are repeated after pauses, as long as there is time. No two deliveries of a FIFO
        queue may be of one message group. A call that SQS rejects as a whole is repeated for each message, to find the
        rejected one. Raises `EffectFailed` when it is unknown which messages SQS accepted.
        """
        try:
            failed = list(self._failed(batch))
        except ClientError as error:
            failed = self._refused(batch, error)
        except BotoCoreError as error:
            raise EffectFailed(reason(error, _queue(batch.destination))) from error
        return failed

    def _failed(self, batch: Batch) -> Iterator[tuple[Delivery, str | None]]:
        entries = [batch_entry(str(number), outgoing(one.message)) for number, one in enumerate(batch.deliveries)]
        _, failures = send_batch(self.sqs, self.url_prefix + batch.destination, entries, backoff=self.backoff)
        for failure in failures:
            why = f"{failure['Code']} at SendMessageBatch of {_queue(batch.destination)}: {failure.get('Message')}"
            logger.warning("a message was rejected: %s", why)
            yield batch.deliveries[int(failure["Id"])], why if _is_of_the_message(failure["Code"]) else None

    def _refused(self, batch: Batch, error: ClientError) -> list[tuple[Delivery, str | None]]:
        why = reason(error, _queue(batch.destination))
        logger.warning("%d messages were rejected: %s", len(batch.deliveries), why)
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= SERVER_ERROR:
            raise EffectFailed(why) from error
        if not _is_of_the_message(error.response["Error"]["Code"]):
            return [(delivery, None) for delivery in batch.deliveries]
        if len(batch.deliveries) == 1:
            return [(delivery, why) for delivery in batch.deliveries]
        single = (Batch(batch.destination, (delivery,)) for delivery in batch.deliveries)
        return [failure for one in single for failure in self.send(one)]


def _is_of_the_message(code: str) -> bool:
    return code.rpartition(".")[2].removesuffix("Exception") in OF_THE_MESSAGE


def _queue(name: str) -> str:
    return f"queue {name!r}"
