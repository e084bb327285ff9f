"""A dead-letter queue as the source of a replay: messages are deleted after they are sent; the others stay."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import translate_read_errors
from signalbox.aws.shared.messages import message_of
from signalbox.aws.shared.visibility import change_visibility, tens
from signalbox.exchange.messages.replayed_messages import UNREADABLE, OriginalMessage
from signalbox.history.replay_run import SourceMessage
from signalbox.history.replay_state import ReplayProgress
from signalbox.messages import Message
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType
    from mypy_boto3_sqs.type_defs import DeleteMessageBatchRequestEntryTypeDef

VISIBILITY_SECONDS = 120  # longer than a claim takes; after a kill, dead letters become visible again after it
WAIT_SECONDS = 2  # a long poll queries all SQS servers, so an empty response means an empty queue
IN_FLIGHT: "QueueAttributeNameType" = "ApproximateNumberOfMessagesNotVisible"


@dataclass(slots=True)
class DeadLetterSource:
    """`ReplaySource` of a dead-letter queue.

    `read` parses a dead letter, and raises one of `UNREADABLE` for other messages; `is_selected` filters the result.
    """

    sqs: "SQSClient"
    queue_url: str
    read: Callable[[Message], OriginalMessage]
    is_selected: Callable[[OriginalMessage], bool]
    unreadable: int = 0
    not_selected: int = 0
    _receipts: dict[str, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    @property
    def is_repeatable(self) -> bool:
        """False: a queue returns its remaining messages in any order."""
        return False

    def take(self, count: int, progress: ReplayProgress) -> Sequence[SourceMessage[OriginalMessage]]:
        """Return selected dead letters; an empty list when the queue returns no new message. Raises `EffectFailed`."""
        found: list[SourceMessage[OriginalMessage]] = []
        while len(found) < count and (fresh := self._received(count - len(found))) is not None:
            sent = [dead_letter.message_id for dead_letter in fresh if dead_letter.message_id in progress.kept]
            self._taken |= set(sent)
            self.discard(sent)
            unsettled = (one for one in fresh if one.message_id not in (*sent, *progress.retained))
            found += self._selected(unsettled)
        return found

    def discard(self, origins: Collection[str]) -> None:
        """Delete dead letters. Raises `EffectFailed`."""
        for part in tens([one for one in origins if one in self._taken]):
            entries: list[DeleteMessageBatchRequestEntryTypeDef] = [
                {"Id": str(number), "ReceiptHandle": self._receipts.pop(one)} for number, one in enumerate(part)
            ]
            with translate_read_errors(self._name):
                self.sqs.delete_message_batch(QueueUrl=self.queue_url, Entries=entries)

    def release(self) -> None:
        """Make the remaining dead letters visible to other readers at once. Raises `EffectFailed`."""
        with translate_read_errors(self._name):
            change_visibility(self.sqs, self.queue_url, list(self._receipts.values()), seconds=0)
        self._receipts.clear()

    def in_flight(self) -> int:
        """Return the approximate number of dead letters in flight: received by another reader or by a killed run.

        Raises `EffectFailed`.
        """
        with translate_read_errors(self._name):
            found = self.sqs.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=[IN_FLIGHT])
        return int(found["Attributes"][IN_FLIGHT])

    def _received(self, count: int) -> list[Message] | None:
        """Receive once; return the dead letters that are new in this run, or None if the response was empty.

        Dead letters that were received before and stay are invisible for another `VISIBILITY_SECONDS`.
        """
        with translate_read_errors(self._name):
            page = self.sqs.receive_message(
                QueueUrl=self.queue_url,
                MaxNumberOfMessages=min(count, MAXIMUM_ENTRIES),
                WaitTimeSeconds=WAIT_SECONDS,
                VisibilityTimeout=VISIBILITY_SECONDS,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        dead_letters = page.get("Messages", [])
        deleted = [one["MessageId"] for one in dead_letters if one["MessageId"] in self._taken - self._receipts.keys()]
        fresh = [one for one in dead_letters if one["MessageId"] not in {*self._receipts, *deleted}]
        self._receipts |= {one["MessageId"]: one["ReceiptHandle"] for one in dead_letters}
        self.discard(deleted)  # SQS occasionally delivers a deleted message again
        return [message_of(one) for one in fresh] if dead_letters else None

    def _selected(self, dead_letters: Iterator[Message]) -> Iterator[SourceMessage[OriginalMessage]]:
        for dead_letter in dead_letters:
            try:
                original = self.read(dead_letter)
            except UNREADABLE:
                self.unreadable += 1
                continue
            if self.is_selected(original):
                self._taken.add(dead_letter.message_id)
                yield SourceMessage(dead_letter.message_id, original)
            else:
                self.not_selected += 1

    @property
    def _name(self) -> str:
        return f"queue {self.queue_url.rpartition('/')[2]!r}"
