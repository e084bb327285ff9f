"""Messages that are published again, with a header that marks them as replayed."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.exchange.messages.deliveries import DeliveredMessage, InvalidDelivery
from signalbox.exchange.messages.headers import HEADERS, MAXIMUM_ATTRIBUTES, OWN_NAMES
from signalbox.exchange.messages.properties import MESSAGE_ID, InvalidPublication, MessageProperties
from signalbox.exchange.model.records import GroupBy, OrderBy
from signalbox.messages import TRACE_HEADER, Attribute, Message, MessageId, moment
from signalbox.queues import is_fifo
from signalbox.sarracenia.rights.names import ExchangeName

REPLAY = "replay"
"""The header that marks a replayed message; its value is the replay's id."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OriginalMessage:
    """A message as it was first published.

    `origin` identifies it among all messages of its source, even if its message id has changed.
    """

    origin: str
    exchange: ExchangeName
    properties: MessageProperties
    message_id: MessageId
    publisher: str
    published_at: datetime
    sequence: int | None = None


Replayable = OriginalMessage | Message
"""A message to replay: one of an exchange, or one of a queue that is not declared, as it is in SQS."""


def replayed_publication(
    original: OriginalMessage, replay_id: str, *, order_by: OrderBy | None, sender: str = ""
) -> Message:
    """Return the message for an exchange's queue; an ordered one accepts it once in five minutes.

    `order_by` is the order that the exchange keeps, or None; `sender` is the sending user.
    """
    properties = _marked(original, replay_id).properties
    if order_by is None:
        message = properties.published()
    else:
        once = _deduplication_id(original.origin, replay_id)
        message = properties.published(deduplication_id=once, order_by=order_by, sender=sender)
    return replace(message, message_id=MessageId(original.origin))


def replayed_copy(
    original: OriginalMessage,
    replay_id: str,
    *,
    into: str,
    expires_at: datetime | None,
    group_by: GroupBy = GroupBy.PUBLISHER,
) -> Message:
    """Return the replayed copy for a declared queue; it equals the original copy except for the replay header."""
    sent_at = {"SentTimestamp": str(round(original.published_at.timestamp() * 1000))}
    copy = _marked(original, replay_id).properties.delivered(
        Message(original.message_id, original.properties.body, {}, sent_at, {}),
        exchange=original.exchange,
        publisher=original.publisher,
        sequence=original.sequence,
        expires_at=expires_at,
        is_fifo=is_fifo(into),
        group_by=group_by,
    )
    system = dict(copy.system_attributes)
    if is_fifo(into):  # SQS would drop this copy as a duplicate of a first one of the last five minutes
        system["MessageDeduplicationId"] = _deduplication_id(original.origin, replay_id)
    return replace(copy, message_id=MessageId(original.origin), system_attributes=system)


def replayed_message(message: Message, replay_id: str, *, into: str) -> Message:
    """Return a replayed message of a queue that is not declared: its body, attributes and group, and the replay header.

    In an ordered queue, the messages without a group are one group. A standard queue gets none.
    """
    attributes = {**message.attributes, REPLAY: Attribute("String", replay_id)}
    system = {name: text for name, text in message.system_attributes.items() if name == TRACE_HEADER}
    if is_fifo(into):
        system["MessageGroupId"] = message.group_id or replay_id
        system["MessageDeduplicationId"] = _deduplication_id(message.message_id, replay_id)
    return replace(message, attributes=attributes, system_attributes=system)


def has_room(message: Message) -> bool:
    """Return whether the mark can be added to the attributes of a message."""
    return len({*message.attributes, REPLAY}) <= MAXIMUM_ATTRIBUTES


def original_of_dead_letter(dead_letter: Message, *, exchange: ExchangeName | None) -> OriginalMessage:
    """Return the original of a dead letter: a copy that was not consumed, or a publication of an exchange's queue.

    `exchange` is the exchange of the dead-letter queue, whose messages users have sent: of these, no attribute is
    believed but the topic, and the id, which the router writes. Only the stage sends to a declared queue. Raises
    `InvalidPublication` and `InvalidDelivery`.
    """
    if exchange is None and "exchange" in dead_letter.attributes:
        found = DeliveredMessage.parse(dead_letter)
        return OriginalMessage(
            dead_letter.message_id,
            found.exchange,
            MessageProperties(found.key, found.body, found.attributes),
            found.message_id,
            found.publisher,
            found.published_at,
            found.sequence,
        )
    properties = MessageProperties.from_published(dead_letter, own_names=OWN_NAMES - {HEADERS})
    return OriginalMessage(
        dead_letter.message_id,
        exchange or ExchangeName(UNKNOWN),
        properties,
        dead_letter.message_id if exchange is None else _marked_id(dead_letter),
        UNKNOWN,
        moment(dead_letter.system_attributes["SentTimestamp"]),
    )


def _marked_id(dead_letter: Message) -> MessageId:
    """Return the id in the publication's dead letter; the own one if an earlier version wrote it."""
    mark = dead_letter.attributes.get(MESSAGE_ID)
    return MessageId((mark and mark.text) or dead_letter.message_id)


UNREADABLE = (InvalidPublication, InvalidDelivery)
"""The errors of `original_of_dead_letter` for a message that no exchange can accept."""


def _marked(original: OriginalMessage, replay_id: str) -> OriginalMessage:
    headers = {**original.properties.headers, REPLAY: Attribute("String", replay_id)}
    return replace(original, properties=replace(original.properties, headers=headers))


def _deduplication_id(origin: str, replay_id: str) -> str:
    return hashlib.sha256(f"{replay_id}\n{origin}".encode(errors="surrogatepass")).hexdigest()
