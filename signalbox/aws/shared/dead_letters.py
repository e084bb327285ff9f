"""Dead-letter queues on SQS."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import translate_read_errors
from signalbox.queues import is_fifo

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

    from signalbox.messages import Message

# SQS takes 1 MiB, attributes included: a longer body is cut to this length, so that its reason fits.
DEAD_LETTER_CHARACTERS = 100_000
REASON_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class SqsDeadLetters:
    """`DeadLetters`: one dead-letter queue."""

    sqs: "SQSClient"
    queue_url: str

    def dead_letter(self, message: "Message", *, reason: str, attributes: Mapping[str, str] | None = None) -> None:
        """Put a message into the dead-letter queue, with the reason, its message id and further attributes.

        A FIFO queue keeps one copy of a message that is put there twice within five minutes (SQS deduplication): a
        function that is killed after this call repeats it. Raises `EffectFailed`.
        """
        texts = {"Reason": reason[:REASON_CHARACTERS], "OriginalMessageId": message.message_id, **(attributes or {})}
        with translate_read_errors(f"the dead-letter queue {self.queue_url.rpartition('/')[2]!r}"):
            self.sqs.send_message(
                QueueUrl=self.queue_url,
                MessageBody=message.body[:DEAD_LETTER_CHARACTERS],
                MessageAttributes={name: {"DataType": "String", "StringValue": text} for name, text in texts.items()},
                **self._ordering(message),  # type: ignore[arg-type]  # texts
            )

    def _ordering(self, message: "Message") -> dict[str, str]:
        if not is_fifo(self.queue_url):
            return {}
        group = message.group_id or message.message_id
        return {"MessageGroupId": group, "MessageDeduplicationId": message.message_id}
