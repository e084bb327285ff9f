"""The queue of calls for the function `overview`, with a message group for each connection."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.live.inbox import deduplication_id
from signalbox.aws.shared.errors import translate_read_errors
from signalbox.live.outbox.overview_calls import OverviewCall

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient


@dataclass(frozen=True, slots=True)
class SqsOverviewCalls:
    """`OverviewCalls`: a FIFO queue with a message group for each connection."""

    sqs: "SQSClient"
    queue_url: str

    def send(self, call: OverviewCall) -> None:
        """Append a call to its connection's message group; the same call twice is one message. Raises `EffectFailed`.

        A message group has one call in flight, so one connection occupies one function instance at most.
        """
        with translate_read_errors("the queue of overview calls"):
            self.sqs.send_message(
                QueueUrl=self.queue_url,
                MessageBody=call.body(),
                MessageGroupId=call.connection,
                MessageDeduplicationId=deduplication_id(call.connection, call.item_id),
            )
