"""The temporary queues of splits on SQS: made like their originals, looked at, emptied and deleted."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.errors import effect, is_passing, look, reason
from signalbox.aws.shared.messages import batch_entry, message_of
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.messages import Message
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName, is_fifo, is_ours
from signalbox.sending import MAXIMUM_ENTRIES, Batch, Delivery
from signalbox.splitting.forwarding.forwarding import Forwarding, returned
from signalbox.splitting.model.split import Session, SplitQueue
from signalbox.splitting.model.target import Target
from signalbox.splitting.model.world import Sample, TemporaryQueue
from signalbox.splitting.queues.queue_attributes import DeadLetterQueue, cloned

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

CAPABILITY = "splitting"
SESSION_TAG, OWNER_TAG, TARGET_TAG = "signalbox:session", "signalbox:owner", "signalbox:target"
TAG_CHARACTERS = " _.:/=+-@"  # beside letters and digits
MAXIMUM_TAG_LENGTH = 256
# The queue's own times do not fit whoever empties it: with a visibility of zero a message would come twice, with one of
# hours a killed function would hold up the end of a session; and a poll must not last the twenty seconds it may.
RETURN_VISIBILITY_SECONDS = 60
RETURN_WAIT_SECONDS = 1  # any wait asks all of SQS's servers, none asks some
WAITING: tuple["QueueAttributeNameType", ...] = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed")
IN_FLIGHT: "QueueAttributeNameType" = "ApproximateNumberOfMessagesNotVisible"
CREATED: "QueueAttributeNameType" = "CreatedTimestamp"


@dataclass(frozen=True, slots=True)
class SqsSplitQueues:
    """`SplitQueues`; `url_prefix` is the URL of a queue up to its name: all are in one account and region."""

    sqs: "SQSClient"
    url_prefix: str
    stage: str

    def create(self, name: QueueName, queue: SplitQueue, *, target: Target, session: Session | None) -> Sequence[str]:
        """Make a queue like the original; return notes on what it could not take over. Its tags say whose it is."""
        attributes, tags = self._described(queue.original)
        clone = cloned(
            attributes,
            tags,
            original=queue.original,
            name=name,
            dead_letter_queue=self._dead_letter_queue(attributes),
            configured_tags=dict(queue.tags),
            own_tags=own_tags(stage=self.stage, target=target, session=session),
        )
        with effect(_queue(name)):
            self._create(name, clone.attributes, clone.tags)
        return clone.notes

    def delete(self, name: QueueName) -> None:
        """Delete a queue; one that is gone already is fine."""
        with effect(_queue(name)):
            try:
                self.sqs.delete_queue(QueueUrl=self._url(name))
            except self.sqs.exceptions.QueueDoesNotExist:
                return

    def observe(
        self, names: Iterable[QueueName], *, now: datetime
    ) -> Mapping[QueueName, tuple[TemporaryQueue, Sample]]:
        """Return those of the queues that are there, each with one new sample of its counters."""
        found = ((name, self._counters(name)) for name in names)
        return {name: _observed(told, now) for name, told in found if told is not None}

    def receive(self, name: QueueName) -> Sequence[tuple[Message, str]]:
        """Take up to ten messages out of a queue, with their receipt handles; FIFO groups in order."""
        with look(_queue(name)):
            try:
                page = self.sqs.receive_message(
                    QueueUrl=self._url(name),
                    MaxNumberOfMessages=MAXIMUM_ENTRIES,
                    VisibilityTimeout=RETURN_VISIBILITY_SECONDS,
                    WaitTimeSeconds=RETURN_WAIT_SECONDS,
                    MessageAttributeNames=["All"],
                    MessageSystemAttributeNames=["All"],
                )
            except self.sqs.exceptions.QueueDoesNotExist:
                return ()
        return tuple((message_of(one), one["ReceiptHandle"]) for one in page.get("Messages", []))

    def remove(self, name: QueueName, receipt_handles: Sequence[str]) -> None:
        """Delete received messages."""
        for start in range(0, len(receipt_handles), MAXIMUM_ENTRIES):
            self._remove(name, receipt_handles[start : start + MAXIMUM_ENTRIES])

    def send_back(self, original: QueueName, messages: Sequence[Message]) -> Sequence[Message]:
        """Send messages to their original queue, in order (`returned`); return those that were not taken.

        Raises `EffectFailed` when none was.
        """
        deliveries = [Delivery(message, original) for message in messages]
        forwarding = Forwarding(messages, is_fifo(original), deliveries)
        reasons: list[str] = []
        while batches := forwarding.next_batches():
            for batch in batches:
                for delivery, why in self._failures(batch):
                    forwarding.failed(delivery)
                    reasons.append(why)
        left = set(forwarding.not_done())
        if reasons and len(left) == len(messages):
            raise EffectFailed(reasons[0])
        return [message for message in messages if message.message_id in left]

    def _url(self, name: str) -> str:
        return f"{self.url_prefix}{name}"

    def _described(self, original: QueueName) -> tuple[Mapping[str, str], Mapping[str, str]]:
        with effect(_queue(original)):
            page = self.sqs.get_queue_attributes(QueueUrl=self._url(original), AttributeNames=["All"])
            tags = self.sqs.list_queue_tags(QueueUrl=self._url(original)).get("Tags", {})
        # The type has attributes that only SetQueueAttributes knows.
        return cast("Mapping[str, str]", page["Attributes"]), tags

    def _dead_letter_queue(self, attributes: Mapping[str, str]) -> DeadLetterQueue:
        if not attributes.get("RedrivePolicy"):
            return DeadLetterQueue()
        # SQS wants it in the account and region of its source.
        name = str(json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"]).rpartition(":")[2]
        with effect(_queue(name)):
            try:
                page = self.sqs.get_queue_attributes(QueueUrl=self._url(name), AttributeNames=["All"])
            except ClientError as error:
                if is_passing(error):
                    raise
                return DeadLetterQueue(unreadable=str(error.response["Error"]["Code"]))
        return DeadLetterQueue(redrive_allow_policy=page.get("Attributes", {}).get("RedriveAllowPolicy"))

    def _create(self, name: QueueName, attributes: Mapping[str, str], tags: Mapping[str, str]) -> None:
        try:
            # `cloned` returns attributes that CreateQueue takes, by the same names.
            told = cast("Mapping[QueueAttributeNameType, str]", attributes)
            self.sqs.create_queue(QueueName=name, Attributes=told, tags=tags)
        except self.sqs.exceptions.QueueNameExists as error:
            # Made before, by a function that was killed, and the original has been changed since.
            found = self.sqs.list_queue_tags(QueueUrl=self._url(name)).get("Tags", {})
            if not is_ours(found, stage=self.stage, capability=CAPABILITY):
                raise EffectRefused(reason(error, _queue(name))) from error

    def _counters(self, name: QueueName) -> Mapping["QueueAttributeNameType", str] | None:
        with look(_queue(name)):
            try:
                page = self.sqs.get_queue_attributes(
                    QueueUrl=self._url(name), AttributeNames=[*WAITING, IN_FLIGHT, CREATED]
                )
            except self.sqs.exceptions.QueueDoesNotExist:
                return None
        return page["Attributes"]

    def _remove(self, name: QueueName, receipt_handles: Sequence[str]) -> None:
        with look(_queue(name)):
            answer = self.sqs.delete_message_batch(
                QueueUrl=self._url(name),
                Entries=[{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(receipt_handles)],
            )
        for failure in answer.get("Failed", []):
            raise EffectFailed(f"{failure['Code']} at DeleteMessageBatch of {_queue(name)}: {failure.get('Message')}")

    def _failures(self, batch: Batch) -> Iterator[tuple[Delivery, str]]:
        entries = [batch_entry(str(n), returned(one.message)) for n, one in enumerate(batch.deliveries)]
        subject = _queue(batch.destination)
        try:
            answer = self.sqs.send_message_batch(QueueUrl=self._url(batch.destination), Entries=entries)
        except (ClientError, BotoCoreError) as error:
            # Those that other calls sent are to be removed from where they were.
            yield from ((delivery, reason(error, subject)) for delivery in batch.deliveries)
            return
        for failure in answer.get("Failed", []):
            why = f"{failure['Code']} at SendMessageBatch of {subject}: {failure.get('Message')}"
            yield batch.deliveries[int(failure["Id"])], why


def own_tags(*, stage: str, target: Target, session: Session | None) -> dict[str, str]:
    """Return the tags by which a temporary queue says what it is for; the deployed consumer's has no session."""
    whose = {SESSION_TAG: session.session_id, OWNER_TAG: session.owner} if session else {}
    told = {STAGE_TAG: stage, CAPABILITY_TAG: CAPABILITY, TARGET_TAG: str(target), **whose}
    return {name: _tag_value(text) for name, text in told.items()}


def _tag_value(text: str) -> str:
    # One odd character in somebody's name would have SQS refuse the queue.
    return "".join(c if c.isalnum() or c in TAG_CHARACTERS else "_" for c in text)[:MAXIMUM_TAG_LENGTH]


def _observed(told: Mapping["QueueAttributeNameType", str], now: datetime) -> tuple[TemporaryQueue, Sample]:
    # Whole seconds are told, so it may have been made as late as the end of that one.
    created_at = datetime.fromtimestamp(int(float(told[CREATED])), UTC) + timedelta(seconds=1)
    waiting = sum(int(told[name]) for name in WAITING)
    return TemporaryQueue(created_at), Sample(now, waiting, int(told[IN_FLIGHT]))


def _queue(name: str) -> str:
    return f"queue {name!r}"
