"""Batch sending to queues on SQS."""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.batch_calls import send_batch
from signalbox.aws.shared.errors import SERVER_ERROR, reason
from signalbox.aws.shared.messages import batch_entry
from signalbox.aws.shared.settings import BACKOFF
from signalbox.backoff import Backoff
from signalbox.errors import EffectFailed
from signalbox.messages import MessageId, outgoing
from signalbox.sending import Batch, SentBatch

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import BatchResultErrorEntryTypeDef

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
# On the wire, and the name of the exception in botocore.
QUEUE_MISSING = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
# The queue's policy, or the policy or state of its key, denies the call; SQS itself answers.
DENIED = frozenset({"AccessDenied", "Disabled", "InvalidKeyUsage", "InvalidState", "NotFound", "OptInRequired"})

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SqsQueueSender:
    """`QueueSender`; `url_prefix` is a queue URL up to the name: all queues are in one account and region."""

    sqs: "SQSClient"
    url_prefix: str
    backoff: Backoff = BACKOFF

    def send(self, batch: Batch) -> SentBatch:
        """Send a batch; return the failed deliveries and the ids of the others.

        Failures that no message caused are repeated after pauses, as long as there is time. No two deliveries of a FIFO
        queue may be of one message group. A call that SQS rejects as a whole is repeated for each message, to find the
        rejected one. Raises `EffectFailed` when it is unknown which messages SQS accepted.
        """
        try:
            return self._sent(batch)
        except ClientError as error:
            return self._refused(batch, error)
        except BotoCoreError as error:
            raise EffectFailed(reason(error, _queue(batch.destination))) from error

    def _sent(self, batch: Batch) -> SentBatch:
        entries = [batch_entry(str(number), outgoing(one.message)) for number, one in enumerate(batch.deliveries)]
        accepted, failures = send_batch(self.sqs, self.url_prefix + batch.destination, entries, backoff=self.backoff)
        ids = {batch.deliveries[int(number)].message.message_id: MessageId(new) for number, new in accepted.items()}
        failed = [(batch.deliveries[int(one["Id"])], one["Code"], _why(batch, one)) for one in failures]
        problem = next((why for _, code, why in failed if not _is_of_the_message(code)), None)
        is_denied = any(_is_denied(code) for _, code, _ in failed)
        reasons = [(one, why if _is_of_the_message(code) else None) for one, code, why in failed]
        return SentBatch(reasons, ids, is_denied=is_denied, problem=problem)

    def _refused(self, batch: Batch, error: ClientError) -> SentBatch:
        why = reason(error, _queue(batch.destination))
        logger.warning("%d messages were rejected: %s", len(batch.deliveries), why)
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= SERVER_ERROR:
            raise EffectFailed(why) from error
        code = error.response["Error"]["Code"]
        if not _is_of_the_message(code):
            return SentBatch(
                [(one, None) for one in batch.deliveries],
                is_queue_missing=code in QUEUE_MISSING,
                is_denied=_is_denied(code),
                problem=why,
            )
        if len(batch.deliveries) == 1:
            return SentBatch([(delivery, why) for delivery in batch.deliveries])
        sent = [self.send(Batch(batch.destination, (delivery,))) for delivery in batch.deliveries]
        ids = {old: new for one in sent for old, new in one.ids.items()}
        return SentBatch([failure for one in sent for failure in one.failed], ids)


def _why(batch: Batch, failure: "BatchResultErrorEntryTypeDef") -> str:
    why = f"{failure['Code']} at SendMessageBatch of {_queue(batch.destination)}: {failure.get('Message')}"
    logger.warning("a message was rejected: %s", why)
    return why


def _is_of_the_message(code: str) -> bool:
    return _error_name(code) in OF_THE_MESSAGE


def _is_denied(code: str) -> bool:
    return _error_name(code).removeprefix("Kms") in DENIED


def _error_name(code: str) -> str:
    """Return a code without what SQS and botocore add to it; that of a key begins with "Kms"."""
    prefix = "Kms" if code.startswith("KMS.") else ""
    return prefix + code.rpartition(".")[2].removesuffix("Exception")


def _queue(name: str) -> str:
    return f"queue {name!r}"
