"""Messages that were published before and are sent again: marked, so that who gets them can tell."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from signalbox.exchange.messages.headers import HEADERS, OWN_NAMES
from signalbox.exchange.messages.properties import (
    DeliveredMessage,
    InvalidDelivery,
    InvalidPublication,
    MessageProperties,
)
from signalbox.exchange.model.records import OrderBy
from signalbox.messages import Attribute, Message, MessageId
from signalbox.queues import is_fifo
from signalbox.sarracenia.rights.names import ExchangeName

REPLAY = "replay"
"""The header that tells a replayed message from the first one; its value is the replay's id."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OriginalMessage:
    """A message as it was published first.

    `origin` tells it from all others of its source, whatever became of its message id.
    """

    origin: str
    exchange: ExchangeName
    properties: MessageProperties
    message_id: MessageId
    publisher: str
    published_at: datetime
    sequence: int | None = None


def replayed_publication(
    original: OriginalMessage, replay_id: str, *, order_by: OrderBy | None, sender: str = ""
) -> Message:
    """Return the message for the queue behind an exchange; an ordered one takes it once in five minutes.

    `order_by` is what the exchange keeps in order, if anything; `sender` is who sends, as SQS knows him.
    """
    properties = _marked(original, replay_id).properties
    if order_by is None:
        message = properties.published()
    else:
        once = _deduplication_id(original, replay_id)
        message = properties.published(deduplication_id=once, order_by=order_by, sender=sender)
    return replace(message, message_id=MessageId(original.origin))


def replayed_copy(original: OriginalMessage, replay_id: str, *, into: str, expires_at: datetime | None) -> Message:
    """Return the copy for a declared queue, as its consumers would have got it first, but for the mark."""
    sent_at = {"SentTimestamp": str(round(original.published_at.timestamp() * 1000))}
    copy = _marked(original, replay_id).properties.delivered(
        Message(original.message_id, original.properties.body, {}, sent_at, {}),
        exchange=original.exchange,
        publisher=original.publisher,
        sequence=original.sequence,
        expires_at=expires_at,
        is_fifo=is_fifo(into),
    )
    system = dict(copy.system_attributes)
    if is_fifo(into):  # the first copy may be so young that SQS would take this one for a second try of it
        system["MessageDeduplicationId"] = _deduplication_id(original, replay_id)
    return replace(copy, message_id=MessageId(original.origin), system_attributes=system)


def original_of_dead_letter(dead_letter: Message, *, exchange: ExchangeName | None) -> OriginalMessage:
    """Return what is in a dead letter: a copy that its queue's consumers left, or a publication beside its exchange.

    `exchange` is the one that the dead-dead_letter queue stands beside. Raises `InvalidPublication` and `InvalidDelivery`.
    """
    if "exchange" in dead_letter.attributes:
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
    publisher = dead_letter.attributes.get("publisher")
    return OriginalMessage(
        dead_letter.message_id,
        exchange or ExchangeName(UNKNOWN),
        properties,
        dead_letter.message_id,
        (publisher and publisher.text) or UNKNOWN,
        datetime.fromtimestamp(int(dead_letter.system_attributes["SentTimestamp"]) / 1000, UTC),
    )


UNREADABLE = (InvalidPublication, InvalidDelivery)
"""What `original_of_dead_letter` raises of a message that no exchange can take."""


def _marked(original: OriginalMessage, replay_id: str) -> OriginalMessage:
    headers = {**original.properties.headers, REPLAY: Attribute("String", replay_id)}
    return replace(original, properties=replace(original.properties, headers=headers))


def _deduplication_id(original: OriginalMessage, replay_id: str) -> str:
    return hashlib.sha256(f"{replay_id}\n{original.origin}".encode(errors="surrogatepass")).hexdigest()
