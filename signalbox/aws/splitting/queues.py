"""The temporary queues of splits on SQS: creation, observation, return of messages and deletion."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.batch_calls import send_batch
from signalbox.aws.shared.errors import is_retryable, reason, translate_read_errors, translate_write_errors
from signalbox.aws.shared.messages import batch_entry, message_of
from signalbox.aws.shared.settings import BACKOFF
from signalbox.backoff import Backoff
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.fifo import FifoBatch
from signalbox.messages import Message, MessageId
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName, is_fifo, is_ours
from signalbox.sending import MAXIMUM_ENTRIES, Batch, Delivery, batches
from signalbox.splitting.forwarding.deliveries import return_request
from signalbox.splitting.model.events import CAPABILITY
from signalbox.splitting.model.observed_state import Sample, TemporaryQueue
from signalbox.splitting.model.split import SplitQueue, SplitSession
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import SentBack
from signalbox.splitting.queues.queue_attributes import OriginalDeadLetterQueue, cloned

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

SESSION_TAG, OWNER_TAG, TARGET_TAG = "signalbox:session", "signalbox:owner", "signalbox:target"
TAG_CHARACTERS = " _.:/=+-@"  # in addition to letters and digits
MAXIMUM_TAG_LENGTH = 256
# The queue's own times do not fit a return: with a visibility timeout of zero a message would be received twice, with
# one of hours a killed function would delay the end of a session; and a poll must not last up to 20 seconds. After this
# time, a command of a killed function comes again, too.
RETURN_VISIBILITY_SECONDS = 20
RETURN_WAIT_SECONDS = 1  # a poll with any wait queries all SQS servers, one without a wait only some
WAITING: tuple["QueueAttributeNameType", ...] = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed")
IN_FLIGHT: "QueueAttributeNameType" = "ApproximateNumberOfMessagesNotVisible"
CREATED: "QueueAttributeNameType" = "CreatedTimestamp"


@dataclass(frozen=True, slots=True)
class SqsSplitQueues:
    """`SplitQueues` on SQS; `url_prefix` is a queue's URL up to its name: all are in one account and region."""

    sqs: "SQSClient"
    url_prefix: str
    stage: str
    backoff: Backoff = BACKOFF

    def create(
        self, name: QueueName, queue: SplitQueue, *, target: Target, session: SplitSession | None
    ) -> Sequence[str]:
        """Create a queue like the original and tag it; return notes on settings that could not be copied."""
        attributes, tags = self._described(queue.original)
        if session is not None and session.gets_copies(queue.original):
            # What its consumer fails to handle was handled by the deployed consumer: it expires in the session's queue.
            attributes = {key: value for key, value in attributes.items() if key != "RedrivePolicy"}
        clone = cloned(
            attributes,
            tags,
            original=queue.original,
            name=name,
            dead_letter_queue=self._dead_letter_queue(attributes),
            configured_tags=dict(queue.tags),
            own_tags=own_tags(stage=self.stage, target=target, session=session),
        )
        with translate_write_errors(_queue(name)):
            self._create(name, clone.attributes, clone.tags)
        return clone.notes

    def delete(self, name: QueueName) -> None:
        """Delete a queue; a queue that does not exist is ignored."""
        with translate_write_errors(_queue(name)):
            try:
                self.sqs.delete_queue(QueueUrl=self._url(name))
            except self.sqs.exceptions.QueueDoesNotExist:
                return

    def observe(
        self, names: Iterable[QueueName], *, now: datetime
    ) -> Mapping[QueueName, tuple[TemporaryQueue, Sample]]:
        """Return the existing queues by name, each with one new sample of its counters."""
        found = ((name, self._counters(name)) for name in names)
        return {name: _observed(attributes, now) for name, attributes in found if attributes is not None}

    def receive(self, name: QueueName) -> Sequence[tuple[Message, str]]:
        """Receive up to ten messages with their receipt handles; FIFO groups in order."""
        with translate_read_errors(_queue(name)):
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
        """Delete received messages. Raises `EffectFailed`."""
        for start in range(0, len(receipt_handles), MAXIMUM_ENTRIES):
            self._remove(name, receipt_handles[start : start + MAXIMUM_ENTRIES])

    def send_back(self, original: QueueName, messages: Sequence[Message]) -> SentBack:
        """Send messages to their original queue, in order.

        Raises `EffectFailed` if no message was accepted.
        """
        work = FifoBatch([(message, Delivery(message, original)) for message in messages], is_fifo(original))
        reasons: list[str] = []
        ids: dict[MessageId, MessageId] = {}
        while ready := work.take_ready():
            for call in batches(ready):
                for delivery, why in self._failures(call, ids):
                    work.fail(delivery.message.message_id)
                    reasons.append(why)
        left = set(work.not_done())
        if reasons and len(left) == len(messages):
            raise EffectFailed(reasons[0])
        return SentBack([message for message in messages if message.message_id in left], ids)

    def _url(self, name: str) -> str:
        return f"{self.url_prefix}{name}"

    def _described(self, original: QueueName) -> tuple[Mapping[str, str], Mapping[str, str]]:
        with translate_write_errors(_queue(original)):
            page = self.sqs.get_queue_attributes(QueueUrl=self._url(original), AttributeNames=["All"])
            tags = self.sqs.list_queue_tags(QueueUrl=self._url(original)).get("Tags", {})
        # The type has attributes that only SetQueueAttributes accepts.
        return cast("Mapping[str, str]", page["Attributes"]), tags

    def _dead_letter_queue(self, attributes: Mapping[str, str]) -> OriginalDeadLetterQueue:
        if not attributes.get("RedrivePolicy"):
            return OriginalDeadLetterQueue()
        # SQS requires it in the account and region of its source.
        name = str(json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"]).rpartition(":")[2]
        with translate_write_errors(_queue(name)):
            try:
                page = self.sqs.get_queue_attributes(QueueUrl=self._url(name), AttributeNames=["All"])
            except ClientError as error:
                if is_retryable(error):
                    raise
                return OriginalDeadLetterQueue(unreadable=str(error.response["Error"]["Code"]))
        return OriginalDeadLetterQueue(redrive_allow_policy=page.get("Attributes", {}).get("RedriveAllowPolicy"))

    def _create(self, name: QueueName, attributes: Mapping[str, str], tags: Mapping[str, str]) -> None:
        try:
            # `cloned` returns attributes that CreateQueue accepts under the same names.
            accepted = cast("Mapping[QueueAttributeNameType, str]", attributes)
            self.sqs.create_queue(QueueName=name, Attributes=accepted, tags=tags)
        except self.sqs.exceptions.QueueNameExists as error:
            # Created earlier by a function that was killed, and the original has changed since.
            found = self.sqs.list_queue_tags(QueueUrl=self._url(name)).get("Tags", {})
            if not is_ours(found, stage=self.stage, capability=CAPABILITY):
                raise EffectRefused(reason(error, _queue(name))) from error

    def _counters(self, name: QueueName) -> Mapping["QueueAttributeNameType", str] | None:
        with translate_read_errors(_queue(name)):
            try:
                page = self.sqs.get_queue_attributes(
                    QueueUrl=self._url(name), AttributeNames=[*WAITING, IN_FLIGHT, CREATED]
                )
            except self.sqs.exceptions.QueueDoesNotExist:
                return None
        return page["Attributes"]

    def _remove(self, name: QueueName, receipt_handles: Sequence[str]) -> None:
        with translate_read_errors(_queue(name)):
            answer = self.sqs.delete_message_batch(
                QueueUrl=self._url(name),
                Entries=[{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(receipt_handles)],
            )
        for failure in answer.get("Failed", []):
            raise EffectFailed(f"{failure['Code']} at DeleteMessageBatch of {_queue(name)}: {failure.get('Message')}")

    def _failures(self, batch: Batch, ids: dict[MessageId, MessageId]) -> Iterator[tuple[Delivery, str]]:
        """Send a batch, add the new ids of its messages to `ids`, and yield the failures."""
        entries = [batch_entry(str(n), return_request(one.message)) for n, one in enumerate(batch.deliveries)]
        subject = _queue(batch.destination)
        try:
            accepted, failures = send_batch(self.sqs, self._url(batch.destination), entries, backoff=self.backoff)
        except (ClientError, BotoCoreError) as error:
            # Messages that other calls sent must still be deleted from the temporary queue.
            yield from ((delivery, reason(error, subject)) for delivery in batch.deliveries)
            return
        ids |= {batch.deliveries[int(number)].message.message_id: MessageId(new) for number, new in accepted.items()}
        for failure in failures:
            why = f"{failure['Code']} at SendMessageBatch of {subject}: {failure.get('Message')}"
            yield batch.deliveries[int(failure["Id"])], why


def own_tags(*, stage: str, target: Target, session: SplitSession | None) -> dict[str, str]:
    """Return the tags of a temporary queue; the deployed consumer's queue has no session."""
    whose = {SESSION_TAG: session.session_id, OWNER_TAG: session.owner} if session else {}
    tags = {STAGE_TAG: stage, CAPABILITY_TAG: CAPABILITY, TARGET_TAG: str(target), **whose}
    return {name: _tag_value(text) for name, text in tags.items()}


def _tag_value(text: str) -> str:
    # SQS refuses a queue if one tag value has a character that is not allowed.
    return "".join(c if c.isalnum() or c in TAG_CHARACTERS else "_" for c in text)[:MAXIMUM_TAG_LENGTH]


def _observed(attributes: Mapping["QueueAttributeNameType", str], now: datetime) -> tuple[TemporaryQueue, Sample]:
    # SQS returns whole seconds, so the queue may have been created as late as the end of that second.
    created_at = datetime.fromtimestamp(int(float(attributes[CREATED])), UTC) + timedelta(seconds=1)
    waiting = sum(int(attributes[name]) for name in WAITING)
    return TemporaryQueue(created_at), Sample(now, waiting, int(attributes[IN_FLIGHT]))


def _queue(name: str) -> str:
    return f"queue {name!r}"
