"""The SQS sender of messages on behalf of users: publications by command, and replayed copies."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.shared.batch_calls import send_batch
from signalbox.aws.shared.errors import PASSING, translate_write_errors
from signalbox.aws.shared.messages import batch_entry
from signalbox.aws.shared.settings import BACKOFF
from signalbox.backoff import Backoff
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.fifo import FifoBatch
from signalbox.messages import Message, MessageId, outgoing
from signalbox.queues import QueueName, is_fifo
from signalbox.sending import Batch, Delivery, batches

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import BatchResultErrorEntryTypeDef

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SqsExchangeSender:
    """`Sender` of the exchange; `url_prefix` is a queue's URL up to its name."""

    sqs: "SQSClient"
    url_prefix: str
    backoff: Backoff = BACKOFF

    def send(self, queue: QueueName, message: Message) -> MessageId:
        """Send a message to an SQS queue; return the id that SQS assigned.

        Raises `EffectRefused` and `EffectFailed`.
        """
        accepted, failures = self._sent(Batch(queue, (Delivery(message, queue),)))
        for failure in failures:
            is_refused = failure["SenderFault"] and failure["Code"] not in PASSING
            refusal = EffectRefused if is_refused else EffectFailed
            raise refusal(f"{failure['Code']} at SendMessageBatch of queue {queue!r}: {failure.get('Message')}")
        return MessageId(accepted["0"])

    def deliver(self, queue: QueueName, messages: Sequence[Message]) -> Sequence[Message]:
        """Send messages to an SQS queue, in order; return those that were not accepted.

        In a FIFO queue, no message overtakes one of its group that was not accepted.
        Raises `EffectRefused` and `EffectFailed` when it is not known which messages were accepted.
        """
        work = FifoBatch([(message, Delivery(message, queue)) for message in messages], is_fifo(queue))
        while ready := work.take_ready():
            for batch in batches(ready):
                for failure in self._sent(batch)[1]:
                    logger.warning("a message was not taken: %s: %s", failure["Code"], failure.get("Message"))
                    work.fail(batch.deliveries[int(failure["Id"])].message.message_id)
        left = set(work.not_done())
        return [message for message in messages if message.message_id in left]

    def _sent(self, batch: Batch) -> "tuple[dict[str, str], list[BatchResultErrorEntryTypeDef]]":
        entries = [batch_entry(str(number), outgoing(one.message)) for number, one in enumerate(batch.deliveries)]
        with translate_write_errors(f"queue {batch.destination!r}"):
            return send_batch(self.sqs, self.url_prefix + batch.destination, entries, backoff=self.backoff)
