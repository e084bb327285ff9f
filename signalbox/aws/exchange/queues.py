"""The SQS queues of exchanges and declared queues, each with its dead-letter queue."""

import hashlib
import json
import string
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import translate_read_errors
from signalbox.aws.shared.managed_queues import OwnQueues
from signalbox.aws.shared.messages import message_of
from signalbox.aws.shared.peek import peek
from signalbox.exchange.model.events import CAPABILITY
from signalbox.exchange.model.names import dead_letter_name
from signalbox.exchange.model.ports import CreatedQueue, QueueSpec
from signalbox.exchange.model.records import QueueSize
from signalbox.messages import Message
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName, QueueUrl

if TYPE_CHECKING:
    from mypy_boto3_sqs.literals import QueueAttributeNameType

NAME_TAG = "signalbox:name"
TAG_CHARACTERS = frozenset(string.ascii_letters + string.digits + " _.:/=+-@")
MAXIMUM_TAG_LENGTH = 256
DEAD_LETTER_RETENTION = timedelta(days=14)  # the maximum of SQS
# One data key for an hour: a KMS request per message would cost more than the message.
DATA_KEY_REUSE = timedelta(hours=1)
# Order and de-duplication apply within a routing key, and no key waits for another.
ORDERED = {
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "messageGroup",
    "FifoThroughputLimit": "perMessageGroupId",
}
WAITING: "QueueAttributeNameType" = "ApproximateNumberOfMessages"
IN_FLIGHT: "QueueAttributeNameType" = "ApproximateNumberOfMessagesNotVisible"
DELAYED: "QueueAttributeNameType" = "ApproximateNumberOfMessagesDelayed"
KEY: "QueueAttributeNameType" = "KmsMasterKeyId"


@dataclass(frozen=True, slots=True)
class SqsExchangeQueues:
    """`ExchangeQueues`. All queues are encrypted with one key and refuse requests without TLS."""

    queues: OwnQueues
    stage: str
    key_arn: str

    def make(self, queue: QueueSpec) -> CreatedQueue:
        """Create a queue and its dead-letter queue, or update the existing ones. Idempotent.

        Raises `ForeignQueue`, `EffectRefused` and `EffectFailed`.
        """
        dead_letters = dead_letter_name(queue.name)
        tags = {STAGE_TAG: self.stage, CAPABILITY_TAG: CAPABILITY, NAME_TAG: _tag_value(queue.resource.name)}
        common = {
            "KmsMasterKeyId": self.key_arn,
            "KmsDataKeyReusePeriodSeconds": seconds_text(DATA_KEY_REUSE),
            **(ORDERED if queue.resource.is_ordered else {}),
        }
        retention = {"MessageRetentionPeriod": seconds_text(DEAD_LETTER_RETENTION)}
        make = partial(self.queues.make, is_ours=queue.is_on_record)
        make(dead_letters, common | retention, tags, sources=[queue.name])
        settings = {
            "MessageRetentionPeriod": seconds_text(queue.retention),
            "VisibilityTimeout": seconds_text(queue.visibility),
        }
        if queue.maximum_receives is not None:
            redrive = {"deadLetterTargetArn": self.queues.arn(dead_letters), "maxReceiveCount": queue.maximum_receives}
            settings["RedrivePolicy"] = json.dumps(redrive)
        make(queue.name, common | settings, tags)
        return CreatedQueue(queue.name, QueueUrl(self.queues.url(queue.name)))

    def delete(self, name: QueueName) -> None:
        """Delete one queue, without its dead-letter queue. Deleting a missing queue has no effect.

        Raises `EffectRefused` and `EffectFailed`.
        """
        self.queues.delete(name)

    def sizes(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueSize]:
        """Return the sizes of the queues that exist. Raises `EffectFailed`."""
        found = ((name, self._size(name)) for name in names)
        return {name: size for name, size in found if size is not None}

    def key(self, name: QueueName) -> str | None:
        """Return the key of a queue's messages as the queue names it, "" without one, None without the queue.

        Raises `EffectFailed`.
        """
        attributes = self._attributes(name, [KEY])
        return None if attributes is None else attributes.get(KEY, "")

    def peek(self, name: QueueName, *, most: int) -> Generator[Message]:
        """Yield about `most` messages of a queue, which stay in it. Raises `EffectFailed`."""
        with translate_read_errors(f"queue {name!r}"):
            yield from map(message_of, peek(self.queues.sqs, self.queues.url(name), most=most))

    def _size(self, name: QueueName) -> QueueSize | None:
        found = self._attributes(name, [WAITING, IN_FLIGHT, DELAYED])
        return None if found is None else QueueSize(int(found[WAITING]), int(found[IN_FLIGHT]), int(found[DELAYED]))

    def _attributes(
        self, name: QueueName, attributes: "Sequence[QueueAttributeNameType]"
    ) -> "Mapping[QueueAttributeNameType, str] | None":
        sqs = self.queues.sqs
        with translate_read_errors(f"queue {name!r}"):
            try:
                found = sqs.get_queue_attributes(QueueUrl=self.queues.url(name), AttributeNames=attributes)
            except sqs.exceptions.QueueDoesNotExist:
                return None
        return found.get("Attributes", {})


def _tag_value(name: str) -> str:
    """Return a name as a valid tag value: the name itself, or its digest if a tag does not allow it."""
    if set(name) <= TAG_CHARACTERS and len(name) <= MAXIMUM_TAG_LENGTH:
        return name
    return f"sha256:{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()}"


def seconds_text(duration: timedelta) -> str:
    """Return a duration as SQS has it in the attributes of queues."""
    return str(round(duration.total_seconds()))
