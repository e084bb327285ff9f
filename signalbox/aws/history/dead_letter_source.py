"""Dead letters as the source of a replay: taken, and deleted once they are sent; the others stay."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import look
from signalbox.aws.shared.messages import message_of
from signalbox.exchange.messages.replayed_messages import UNREADABLE, OriginalMessage
from signalbox.history.replay_run import Ready
from signalbox.history.replay_state import Progress
from signalbox.messages import Message
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType
    from mypy_boto3_sqs.type_defs import (
        ChangeMessageVisibilityBatchRequestEntryTypeDef,
        DeleteMessageBatchRequestEntryTypeDef,
    )

HELD_SECONDS = 120  # longer than a claim takes; after a kill, letters are there again so much later
WAIT_SECONDS = 2  # a long poll asks all of SQS's servers; what it does not find is not there
IN_FLIGHT: "QueueAttributeNameType" = "ApproximateNumberOfMessagesNotVisible"


@dataclass(slots=True)
class DeadLetters:
    """`Source` over a dead-letter queue. `read` raises of what is no message of an exchange; `is_wanted` chooses."""

    sqs: "SQSClient"
    queue_url: str
    read: Callable[[Message], OriginalMessage]
    is_wanted: Callable[[OriginalMessage], bool]
    unreadable: int = 0
    passed_over: int = 0
    _receipts: dict[str, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    @property
    def is_repeatable(self) -> bool:
        """No: a queue gives in any order what is left."""
        return False

    def take(self, count: int, progress: Progress) -> Sequence[Ready[OriginalMessage]]:
        """Return letters that are wanted; none when a look at the queue finds nothing new. Raises `EffectFailed`."""
        found: list[Ready[OriginalMessage]] = []
        while len(found) < count and (fresh := self._received(count - len(found))) is not None:
            sent = [letter.message_id for letter in fresh if letter.message_id in progress.kept]
            self._taken |= set(sent)
            self.forget(sent)
            left = (one for one in fresh if one.message_id not in (*sent, *progress.left_alone))
            found += self._chosen(left)
        return found

    def forget(self, origins: Collection[str]) -> None:
        """Delete letters. Raises `EffectFailed`."""
        for part in _tens([one for one in origins if one in self._taken]):
            entries: list[DeleteMessageBatchRequestEntryTypeDef] = [
                {"Id": str(number), "ReceiptHandle": self._receipts.pop(one)} for number, one in enumerate(part)
            ]
            with look(self._name):
                self.sqs.delete_message_batch(QueueUrl=self.queue_url, Entries=entries)

    def release(self) -> None:
        """Let others see at once what stays. Raises `EffectFailed`."""
        for part in _tens(list(self._receipts.values())):
            entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef] = [
                {"Id": str(number), "ReceiptHandle": one, "VisibilityTimeout": 0} for number, one in enumerate(part)
            ]
            with look(self._name):
                self.sqs.change_message_visibility_batch(QueueUrl=self.queue_url, Entries=entries)
        self._receipts.clear()

    def in_flight(self) -> int:
        """Return how many letters somebody holds, about: another reader, or a run that was killed.

        Raises `EffectFailed`.
        """
        with look(self._name):
            told = self.sqs.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=[IN_FLIGHT])["Attributes"]
        return int(told[IN_FLIGHT])

    def _received(self, count: int) -> list[Message] | None:
        """Return the letters of one look that did not come before in this run, or None if none can be seen.

        What came before, and is to stay, is kept from us and others for as long again.
        """
        with look(self._name):
            page = self.sqs.receive_message(
                QueueUrl=self.queue_url,
                MaxNumberOfMessages=min(count, MAXIMUM_ENTRIES),
                WaitTimeSeconds=WAIT_SECONDS,
                VisibilityTimeout=HELD_SECONDS,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        letters = page.get("Messages", [])
        deleted = [one["MessageId"] for one in letters if one["MessageId"] in self._taken - self._receipts.keys()]
        fresh = [one for one in letters if one["MessageId"] not in {*self._receipts, *deleted}]
        self._receipts |= {one["MessageId"]: one["ReceiptHandle"] for one in letters}
        self.forget(deleted)  # SQS gives a message once more, seldom
        return [message_of(one) for one in fresh] if letters else None

    def _chosen(self, letters: Iterator[Message]) -> Iterator[Ready[OriginalMessage]]:
        for letter in letters:
            try:
                original = self.read(letter)
            except UNREADABLE:
                self.unreadable += 1
                continue
            if self.is_wanted(original):
                self._taken.add(letter.message_id)
                yield Ready(letter.message_id, original)
            else:
                self.passed_over += 1

    @property
    def _name(self) -> str:
        return f"queue {self.queue_url.rpartition('/')[2]!r}"


def _tens(entries: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(entries), MAXIMUM_ENTRIES):
        yield entries[start : start + MAXIMUM_ENTRIES]
