"""Dead letters: messages that cannot be handled, put aside with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import look
from signalbox.queues import is_fifo

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

    from signalbox.messages import Message

# SQS takes 1 MiB, attributes included: of a longer dead letter this much is kept, so that its reason fits beside it.
DEAD_LETTER_CHARACTERS = 100_000
REASON_CHARACTERS = 1_000


def bury(
    sqs: "SQSClient",
    queue_url: str,
    body: str,
    *,
    reason: str,
    message_id: str,
    others: Mapping[str, str] | None = None,
    group_id: str | None = None,
) -> None:
    """Put a message into a dead-letter queue, with its reason, the id that it had and other attributes.

    With `group_id` that is a FIFO queue, in which a message that is put aside twice within five minutes is there once.
    """
    attributes = {"Reason": reason[:REASON_CHARACTERS], "OriginalMessageId": message_id, **(others or {})}
    ordered = {"MessageGroupId": group_id, "MessageDeduplicationId": message_id} if group_id else {}
    sqs.send_message(
        QueueUrl=queue_url,
        MessageBody=body[:DEAD_LETTER_CHARACTERS],
        MessageAttributes={name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()},
        **ordered,  # type: ignore[arg-type]  # texts
    )


@dataclass(frozen=True, slots=True)
class SqsDeadLetters:
    """A dead-letter queue, as whoever puts messages aside has it."""

    sqs: "SQSClient"
    queue_url: str

    def bury(self, message: "Message", *, reason: str, others: Mapping[str, str] | None = None) -> None:
        """Put a message aside, with its reason and other attributes. Raises `EffectFailed`.

        In a FIFO queue, one that is put aside again soon, since a function was killed before its answer, is there once.
        """
        with look(f"the dead-letter queue {self.queue_url.rpartition('/')[2]!r}"):
            bury(
                self.sqs,
                self.queue_url,
                message.body,
                reason=reason,
                message_id=message.message_id,
                others=others,
                group_id=message.group_id if is_fifo(self.queue_url) else None,
            )
