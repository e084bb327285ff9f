"""The SQS sender of messages on behalf of users: publications by command, and replayed copies."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import effect
from signalbox.aws.shared.messages import batch_entry
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.messages import Message, MessageId, outgoing
from signalbox.queues import QueueName, is_fifo
from signalbox.sending import Batch, Delivery, batches

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchResultTypeDef

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SqsExchangeSender:
    """`Sender` of the exchange; `url_prefix` is a queue's URL up to its name."""

    sqs: "SQSClient"
    url_prefix: str

    def send(self, queue: QueueName, message: Message) -> MessageId:
        """Send a message to an SQS queue; return the id that SQS assigned.

        Raises `EffectRefused` and `EffectFailed`.
        """
        batch = Batch(queue, (Delivery(message, queue),))
        answer = self._sent(batch)
        for failure in answer.get("Failed", []):
            refusal = EffectRefused if failure["SenderFault"] else EffectFailed
            raise refusal(f"{failure['Code']} at SendMessageBatch of queue {queue!r}: {failure.get('Message')}")
        return MessageId(answer["Successful"][0]["MessageId"])

    def deliver(self, queue: QueueName, messages: Sequence[Message]) -> Sequence[Message]:
        """Send messages to an SQS queue, in order; return those that were not accepted.

        Raises `EffectRefused` and `EffectFailed` when it is not known which messages were accepted.
        """
        left: list[Message] = []
        for batch in batches(Delivery(message, queue) for message in messages):
            # In a FIFO queue, no message may overtake one that was not accepted.
            if left and is_fifo(queue):
                left += [delivery.message for delivery in batch.deliveries]
                continue
            for failure in self._sent(batch).get("Failed", []):
                logger.warning("a message was not taken: %s: %s", failure["Code"], failure.get("Message"))
                left.append(batch.deliveries[int(failure["Id"])].message)
        return left

    def _sent(self, batch: Batch) -> "SendMessageBatchResultTypeDef":
        entries = [batch_entry(str(number), outgoing(one.message)) for number, one in enumerate(batch.deliveries)]
        with effect(f"queue {batch.destination!r}"):
            return self.sqs.send_message_batch(QueueUrl=self.url_prefix + batch.destination, Entries=entries)
