"""The publisher, which validates messages and sends them to an exchange's SQS queue, up to ten a call."""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from signalbox.exchange.messages.properties import InvalidPublication, MessageProperties
from signalbox.exchange.model.records import OrderBy
from signalbox.messages import MAXIMUM_BYTES, Message, MessageId, outgoing, size_bytes
from signalbox.new_queues import when_usable
from signalbox.queues import QueueUrl
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """A message to publish; an ordered exchange accepts a `deduplication_id` once in five minutes."""

    routing_key: str
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)
    deduplication_id: str | None = None


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result for a request: the message's id, or the reason why it cannot be published."""

    request: PublishRequest
    message_id: MessageId | None = None
    problem: InvalidPublication | None = None


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes to one exchange; `order_by` is the order that it was declared to keep.

    `sender` is the publishing user.
    """

    sqs: "SQSClient"
    queue_url: QueueUrl
    is_ordered: bool
    order_by: OrderBy = OrderBy.TOPIC
    sender: str = ""
    sleep: Callable[[float], None] = time.sleep

    def publish(self, requests: Iterable[PublishRequest]) -> Iterator[PublishResult]:
        """Publish messages and yield the results in order; a message whose result was yielded is stored durably."""
        for batch in _batches(map(self._checked, requests)):
            yield from self._sent(batch)

    def _checked(self, request: PublishRequest) -> "_Checked":
        try:
            properties = MessageProperties.of_publication(request.routing_key, request.body, request.headers)
        except InvalidPublication as problem:
            return _Checked(PublishResult(request, problem=problem))
        deduplication_id = (request.deduplication_id or secrets.token_hex(16)) if self.is_ordered else None
        message = properties.published(deduplication_id=deduplication_id, order_by=self.order_by, sender=self.sender)
        return _Checked(PublishResult(request), message)

    def _sent(self, batch: Sequence["_Checked"]) -> Iterator[PublishResult]:
        messages = {str(number): one.message for number, one in enumerate(batch) if one.message is not None}
        ids = dict(self._ids(messages))
        for number, one in enumerate(batch):
            yield PublishResult(one.result.request, ids.get(str(number)), one.result.problem)

    def _ids(self, messages: Mapping[str, Message]) -> Iterator[tuple[str, MessageId]]:
        if not messages:
            return
        entries: list[Any] = [{"Id": number, **outgoing(message)} for number, message in messages.items()]
        # The exchange may have been declared a moment ago.
        answer = when_usable(
            lambda: self.sqs.send_message_batch(QueueUrl=self.queue_url, Entries=entries),
            missing=self.sqs.exceptions.QueueDoesNotExist,
            sleep=self.sleep,
        )
        for taken in answer.get("Successful", ()):
            yield taken["Id"], MessageId(taken["MessageId"])
        for failure in answer.get("Failed", ()):
            # Retried alone, so that the SQS client's handling of errors applies to it.
            fields: dict[str, Any] = outgoing(messages[failure["Id"]])
            yield failure["Id"], MessageId(self.sqs.send_message(QueueUrl=self.queue_url, **fields)["MessageId"])


@dataclass(frozen=True, slots=True)
class _Checked:
    """A validated request; without `message`, it is invalid."""

    result: PublishResult
    message: Message | None = None


def _batches(checked: Iterable[_Checked]) -> Iterator[Sequence[_Checked]]:
    """Yield batches for calls, never with two messages of a group, of which the first could fail alone."""
    batch: list[_Checked] = []
    size, groups = 0, set[str | None]()
    for one in checked:
        more = 0 if one.message is None else size_bytes(one.message)
        group = None if one.message is None else one.message.group_id
        if batch and (size + more > MAXIMUM_BYTES or group in groups):
            yield batch
            batch, size, groups = [], 0, set()
        batch.append(one)
        size += more
        groups |= {group} - {None}
        if len(batch) == MAXIMUM_ENTRIES:  # send before waiting for the next request, which may take long
            yield batch
            batch, size, groups = [], 0, set()
    if batch:
        yield batch
