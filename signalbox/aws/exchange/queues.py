"""The queues in SQS behind exchanges and declared queues, each with a dead-letter queue beside it."""

import hashlib
import json
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import look
from signalbox.aws.shared.managed_queues import OwnQueues
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.exchange.model.events import CAPABILITY
from signalbox.exchange.model.names import dead_letter_name
from signalbox.exchange.model.records import CreatedQueue, QueueSize, QueueSpec
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName, QueueUrl

if TYPE_CHECKING:
    from mypy_boto3_sqs.literals import QueueAttributeNameType

NAME_TAG = "signalbox:name"
TAG_CHARACTERS = frozenset(string.ascii_letters + string.digits + " _.:/=+-@")
MAXIMUM_TAG_LENGTH = 256
DEAD_LETTER_RETENTION = timedelta(days=14)  # the longest that SQS has
# One data key for an hour: a request to KMS per message would cost more than the message.
DATA_KEY_REUSE = timedelta(hours=1)
# It was made a moment ago, and SQS documents that it takes a second to be known everywhere.
NOT_YET_THERE = "Dead letter target does not exist"
# Order and de-duplication are those of a routing key, and no key waits for the others.
ORDERED = {
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "messageGroup",
    "FifoThroughputLimit": "perMessageGroupId",
}
WAITING: "QueueAttributeNameType" = "ApproximateNumberOfMessages"
IN_FLIGHT: "QueueAttributeNameType" = "ApproximateNumberOfMessagesNotVisible"
DELAYED: "QueueAttributeNameType" = "ApproximateNumberOfMessagesDelayed"


@dataclass(frozen=True, slots=True)
class SqsExchangeQueues:
    """`ExchangeQueues`; all queues are encrypted with one key, and take nothing without TLS."""

    queues: OwnQueues
    stage: str
    key_arn: str

    def make(self, queue: QueueSpec) -> CreatedQueue:
        """Make a queue and its dead-letter queue, or make those that are there as they are to be; may come twice.

        Raises `ForeignQueue`, `EffectRefused` and `EffectFailed`.
        """
        dead_letters = dead_letter_name(queue.name)
        tags = {STAGE_TAG: self.stage, CAPABILITY_TAG: CAPABILITY, NAME_TAG: _tag_value(queue.resource.name)}
        common = {
            "KmsMasterKeyId": self.key_arn,
            "KmsDataKeyReusePeriodSeconds": _seconds(DATA_KEY_REUSE),
            **(ORDERED if queue.resource.is_ordered else {}),
        }
        self.queues.make(dead_letters, {**common, "MessageRetentionPeriod": _seconds(DEAD_LETTER_RETENTION)}, tags)
        redrive = {"deadLetterTargetArn": self.queues.arn(dead_letters), "maxReceiveCount": queue.maximum_receives}
        settings = {
            "MessageRetentionPeriod": _seconds(queue.retention),
            "VisibilityTimeout": _seconds(queue.visibility),
            "RedrivePolicy": json.dumps(redrive),
        }
        try:
            self.queues.make(queue.name, common | settings, tags)
        except EffectRefused as error:
            if NOT_YET_THERE in str(error):
                raise EffectFailed(f"{dead_letters!r} is so new that SQS does not find it yet: {error}") from error
            raise
        return CreatedQueue(queue.name, QueueUrl(self.queues.url(queue.name)))

    def delete(self, name: QueueName) -> None:
        """Delete one queue, and not the one beside it; a queue that is gone already is fine.

        Raises `EffectRefused` and `EffectFailed`.
        """
        self.queues.delete(name)

    def sizes(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueSize]:
        """Return how much those of the queues hold that are there. Raises `EffectFailed`."""
        found = ((name, self._size(name)) for name in names)
        return {name: size for name, size in found if size is not None}

    def _size(self, name: QueueName) -> QueueSize | None:
        sqs = self.queues.sqs
        with look(f"queue {name!r}"):
            try:
                attributes = sqs.get_queue_attributes(
                    QueueUrl=self.queues.url(name), AttributeNames=[WAITING, IN_FLIGHT, DELAYED]
                )["Attributes"]
            except sqs.exceptions.QueueDoesNotExist:
                return None
        return QueueSize(int(attributes[WAITING]), int(attributes[IN_FLIGHT]), int(attributes[DELAYED]))


def _tag_value(name: str) -> str:
    """Return a name as a tag may have it: where it may not, a digest, which tells names apart all the same."""
    if set(name) <= TAG_CHARACTERS and len(name) <= MAXIMUM_TAG_LENGTH:
        return name
    return f"sha256:{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()}"


def _seconds(duration: timedelta) -> str:
    return str(round(duration.total_seconds()))
