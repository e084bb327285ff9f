"""The copies of a publication, one for each queue, as messages of the target queue and of the retry queue."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.errors import RejectedError
from signalbox.exchange.messages.deliveries import DeliveredMessage, InvalidDelivery
from signalbox.exchange.messages.headers import announced_file
from signalbox.exchange.messages.properties import PUBLISHER, copy_group, group_of
from signalbox.exchange.messages.publications import Publication, attempt
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import StageNames, is_existing
from signalbox.exchange.model.records import GroupBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.messages import TRACE_HEADER, Attribute, Message, MessageId, NotAMessage, size_bytes
from signalbox.queues import QueueName, is_fifo
from signalbox.sarracenia.rights.names import ExchangeName, UserName, queue_user

RETRY = "retry"


class InvalidRetry(RejectedError):
    """Raised for a retry-queue message that the router did not write."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a publication for one queue; `message` is the message that the queue's consumers get.

    `file` is the id of the announced file. `delivered_as` is the SQS id in the queue, once SQS has accepted the copy.
    `waiting_since` is the time at which it was put into a retry queue. `declared_by` is the user who declared its
    queue, or None if that was an administrator.
    """

    queue: DeclaredName
    destination: QueueName
    message: Message
    size_bytes: int
    exchange: ExchangeName
    key: RoutingKey
    sequence: int | None
    published_at: datetime
    attempt: int = 1
    file: str | None = None
    delivered_as: MessageId | None = None
    waiting_since: datetime | None = None
    declared_by: UserName | None = None

    @property
    def message_id(self) -> MessageId:
        """Return the id of the publication."""
        return self.message.message_id

    @property
    def publisher(self) -> str:
        """Return the user or role that published it, without the name of a role's session: its users choose that."""
        return (self.message.attributes[PUBLISHER].text or "").partition(":")[0]

    @property
    def waiting_id(self) -> MessageId:
        """Return the id among messages of several queues: a publication may wait, or be dead, for each of them."""
        return MessageId(f"{self.message_id} {self.destination}")

    @property
    def owner(self) -> DeclaredName:
        """Return the name of the queue's owner: an existing queue itself, or `q_` and a user.

        A user with loose ownership may declare queues with the names of many users.
        """
        return (
            self.queue if is_existing(self.queue) else DeclaredName(f"q_{self.declared_by or queue_user(self.queue)}")
        )

    @property
    def keeps_order(self) -> bool:
        """Return whether no later message of the key may reach the queue before this one."""
        return self.sequence is not None and is_fifo(self.destination)


def copies(
    publication: Publication,
    *,
    exchange: ExchangeName,
    names: StageNames,
    message_ttls: Mapping[DeclaredName, timedelta],
    groups: Mapping[DeclaredName, GroupBy],
    declarers: Mapping[DeclaredName, UserName | None],
    sequence: int | None,
    now: datetime,
) -> Iterator[Copy]:
    """Yield the copy for each queue. Copies with equal content share one message object."""
    message, properties = publication.message, publication.properties
    shared: dict[tuple[bool, timedelta | None, GroupBy], tuple[Message, int]] = {}
    for queue in publication.routes.queues:
        destination, lifetime = names.queue(queue), message_ttls.get(queue)
        variant = is_fifo(destination), lifetime, groups.get(queue, GroupBy.PUBLISHER)
        if variant not in shared:
            copied = properties.delivered(
                message,
                exchange=exchange,
                publisher=publication.publisher,
                sequence=sequence,
                expires_at=None if lifetime is None else now + lifetime,
                is_fifo=is_fifo(destination),
                group_by=variant[2],
            )
            shared[variant] = copied, size_bytes(copied)
        yield Copy(
            queue=queue,
            destination=destination,
            message=shared[variant][0],
            size_bytes=shared[variant][1],
            exchange=exchange,
            key=properties.key,
            sequence=sequence,
            published_at=message.sent_at,
            attempt=attempt(message),
            file=publication.file,
            declared_by=declarers.get(queue),
        )


def retry_message(copy: Copy) -> Message:
    """Return the message for the retry queue; its group keeps ordered copies of a key in order.

    Its body is the copy's body: embedded in JSON it could exceed SQS's limit.
    """
    document: dict[str, object] = {
        "queue": copy.queue,
        "attributes": {name: attribute.value for name, attribute in copy.message.attributes.items()},
    }
    # The group of a standard queue with another setting than the default, which the retry does not read.
    usual = group_of(RoutingKey(copy.message.attributes[PUBLISHER].text or ""))
    if not is_fifo(copy.destination) and copy.message.group_id not in (None, usual):
        document["group"] = copy.message.group_id
    if copy.declared_by not in (None, queue_user(copy.queue)):
        document["declared_by"] = copy.declared_by
    system = {name: text for name, text in copy.message.system_attributes.items() if name == TRACE_HEADER}
    if copy.keeps_order:
        system["MessageGroupId"] = _digest(copy.destination, copy.exchange, copy.key)
        system["MessageDeduplicationId"] = _digest(copy.destination, copy.message_id)
    attributes = {RETRY: Attribute("String", json.dumps(document, separators=(",", ":")))}
    return Message(copy.waiting_id, copy.message.body, attributes, system)


def read_retry(message: Message, names: StageNames) -> Copy:
    """Return the copy in a message of a retry queue. Raises `InvalidRetry`."""
    try:
        document = json.loads(_text(message))
        queue = DeclaredName(document["queue"])
        copied = Message.parse({"Body": message.body, "MessageAttributes": document["attributes"]})
        delivered = DeliveredMessage.parse(copied)
        destination = names.queue(queue)
    except (NotAMessage, InvalidDelivery, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRetry(f"message {message.message_id!r} is not a copy to retry: {error}") from error
    system = {name: text for name, text in message.system_attributes.items() if name == TRACE_HEADER}
    system |= _group(delivered, document.get("group"), is_ordered=is_fifo(destination))
    waiting = Message(delivered.message_id, message.body, copied.attributes, system)
    return Copy(
        queue=queue,
        destination=destination,
        message=waiting,
        size_bytes=size_bytes(waiting),
        exchange=delivered.exchange,
        key=delivered.key,
        sequence=delivered.sequence,
        published_at=delivered.published_at,
        attempt=1 + int(message.system_attributes["ApproximateReceiveCount"]),
        file=announced_file(delivered.key, message.body),
        waiting_since=message.sent_at,
        declared_by=document.get("declared_by"),
    )


def _group(delivered: DeliveredMessage, written: object, *, is_ordered: bool) -> dict[str, str]:
    if isinstance(written, str) and not is_ordered:
        return {"MessageGroupId": written}
    return copy_group(
        delivered.key, delivered.publisher, delivered.message_id, is_fifo=is_ordered, group_by=GroupBy.PUBLISHER
    )


def _text(message: Message) -> str:
    attribute = message.attributes[RETRY]
    if attribute.text is None:
        raise ValueError("its attribute 'retry' is not a text")
    return attribute.text


def _digest(*names: str) -> str:
    return hashlib.sha256("\n".join(names).encode(errors="surrogatepass")).hexdigest()
