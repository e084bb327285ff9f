"""The properties of a message: routing key, body and headers, as published and as sent to a queue."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.documents import Problems
from signalbox.errors import RejectedError
from signalbox.exchange.messages.headers import HEADERS, headers_text, is_allowed, packed, unpacked
from signalbox.exchange.model.records import GroupBy, OrderBy
from signalbox.exchange.model.topics import InvalidRoutingKey, RoutingKey, parse_routing_key, shown
from signalbox.messages import MAXIMUM_BYTES, TRACE_HEADER, Attribute, Message, MessageId, size_bytes
from signalbox.sarracenia.rights.names import ExchangeName

# `live` holds the metadata that a session adds to its publications.
TOPIC, PUBLISHER, LIVE, MESSAGE_ID = "topic", "publisher", "live", "message_id"
EMPTY, ESCAPED = "String.empty", "String.json"
# The size of the exchange's own attributes, which must fit into each copy and each dead letter.
ROOM_BYTES = 4_096
GROUP_LENGTH = 128  # SQS, MessageGroupId: printable ASCII without the space
HASHED = "sha256-"
ONE_GROUP = RoutingKey("exchange")  # of an exchange with one order for all messages
GROUPS_OF = {
    OrderBy.TOPIC: "its routing key",
    OrderBy.EXCHANGE: "all that is published to this exchange",
}
KEPT_CHARACTERS = 100_000  # of a dead letter's body, if the reason would not fit otherwise
REASON_CHARACTERS = 1_000


class InvalidPublication(RejectedError):
    """Raised when a message cannot be published, or when an exchange's queue holds an invalid publication."""


@dataclass(frozen=True, slots=True)
class MessageProperties:
    """The properties of a publication: its routing key, body and headers."""

    key: RoutingKey
    body: str
    headers: Mapping[str, Attribute]

    @classmethod
    def of_publication(
        cls, routing_key: str, body: str, headers: Mapping[str, str] | None = None
    ) -> "MessageProperties":
        """Return the properties of a new publication. Raises `InvalidPublication` with all problems."""
        problems = Problems()
        key = _key(routing_key, problems)
        if not body:
            problems.add("body", "is empty; SQS requires at least one character")
        elif not is_allowed(body):
            problems.add(
                "body", "has characters that SQS does not allow: control characters, or half of a surrogate pair"
            )
        attributes = {name: Attribute("String", text) for name, text in (headers or {}).items()}
        properties = cls(key, body, attributes)
        _check_size(properties, problems)
        problems.refuse(InvalidPublication)
        return properties

    @classmethod
    def from_published(cls, message: Message, *, own_names: Collection[str] = (TOPIC,)) -> "MessageProperties":
        """Return the properties of a message in an exchange's queue. Raises `InvalidPublication`.

        Attributes named in `own_names` are not headers.
        """
        problems = Problems()
        key = topic_of(message, problems)
        properties = cls(key, message.body, unpacked(message.attributes, problems, without=own_names))
        _check_size(properties, problems)
        problems.refuse(InvalidPublication)
        return properties

    def check_group(self, message: Message, order_by: OrderBy) -> None:
        """Raise `InvalidPublication` if a message of an ordered exchange is in the wrong message group."""
        expected = _group(self.key, order_by, "")
        if message.group_id != expected:
            whose = f"expected {expected!r}, the group of {GROUPS_OF[order_by]}"
            raise InvalidPublication(f"MessageGroupId: {whose}, not {shown(message.group_id)}")

    def published(
        self,
        *,
        publisher: str | None = None,
        deduplication_id: str | None = None,
        order_by: OrderBy = OrderBy.TOPIC,
        sender: str = "",
    ) -> Message:
        """Return the message for the exchange's queue. Only an ordered exchange requires a de-duplication id.

        `publisher` is the user on whose behalf a trusted sender publishes; from other senders it is only a header.
        `sender` is the user or the connection that sends the message: the group in an exchange ordered by publisher.
        """
        own = {TOPIC: _topic(self.key)}
        if publisher is not None:
            own[PUBLISHER] = Attribute("String", publisher)
        group = _group(self.key, order_by, sender or publisher or "")
        system = {} if deduplication_id is None else _fifo(group, deduplication_id)
        return Message(MessageId(""), self.body, packed(own, self.headers), system)

    def delivered(
        self,
        published: Message,
        *,
        exchange: ExchangeName,
        publisher: str,
        sequence: int | None,
        expires_at: datetime | None,
        is_fifo: bool,
        group_by: GroupBy = GroupBy.PUBLISHER,
    ) -> Message:
        """Return the copy for a queue; `published` is the message that was received from the exchange's queue."""
        own = {
            TOPIC: _topic(self.key),
            "exchange": Attribute("String", exchange),
            MESSAGE_ID: Attribute("String", published.message_id),
            PUBLISHER: Attribute("String", publisher),
            "published_at": Attribute("Number", published.system_attributes["SentTimestamp"]),
        }
        if sequence is not None:
            own["sequence"] = Attribute("Number", str(sequence))
        if expires_at is not None:
            own["expires_at"] = Attribute("Number", str(round(expires_at.timestamp() * 1000)))
        system = copy_group(self.key, publisher, published.message_id, is_fifo=is_fifo, group_by=group_by)
        if TRACE_HEADER in published.system_attributes:
            system[TRACE_HEADER] = published.system_attributes[TRACE_HEADER]
        return Message(published.message_id, self.body, packed(own, self.headers), system)


def group_of(key: RoutingKey) -> str:
    """Return the message group of a routing key; different keys have different groups."""
    is_group = 1 <= len(key) <= GROUP_LENGTH and all("!" <= character <= "~" for character in key)
    # A key that looks like a hash is hashed too: it could equal the hash of another key.
    return key if is_group and not key.startswith(HASHED) else HASHED + hashlib.sha256(key.encode()).hexdigest()


def copy_group(
    key: RoutingKey, publisher: str, message_id: MessageId, *, is_fifo: bool, group_by: GroupBy
) -> dict[str, str]:
    """Return the message group of a copy: of its key in an ordered queue, else by the queue's setting.

    SQS's fair queues let no group's burst delay the messages of the others in a standard queue.
    """
    if is_fifo:
        return _fifo(group_of(key), message_id)
    return {"MessageGroupId": group_of(key if group_by is GroupBy.TOPIC else RoutingKey(publisher))}


def _group(key: RoutingKey, order_by: OrderBy, publisher: str) -> str:
    groups = {OrderBy.TOPIC: key, OrderBy.PUBLISHER: RoutingKey(publisher), OrderBy.EXCHANGE: ONE_GROUP}
    return group_of(groups[order_by])


def dead_letter_message(message: Message, *, own_names: Collection[str], reason: str, is_fifo: bool) -> Message:
    """Return a message for a dead-letter queue: the original message with its id and the reason as attributes.

    The attributes in `own_names` stay: those that the exchange wrote. The others are headers. If the message would be
    too large, headers move into one attribute and the body is truncated; attributes too large by themselves go.
    """
    own = {name: one for name, one in message.attributes.items() if name in own_names and name != HEADERS}
    marks = {
        MESSAGE_ID: own.get(MESSAGE_ID, Attribute("String", message.message_id)),  # SQS gives the dead letter another
        "Reason": Attribute("String", "".join(filter(is_allowed, reason))[:REASON_CHARACTERS]),
    }
    problems = Problems()
    headers = unpacked(message.attributes, problems, without=own_names)
    attributes = (
        {**marks, HEADERS: Attribute("String", headers_text(message.attributes))}  # unchanged: they cannot be parsed
        if problems.found
        else packed(own | marks, headers)
    )
    system = _fifo(message.group_id or message.message_id, message.message_id) if is_fifo else {}
    dead = Message(message.message_id, message.body, attributes, system)
    shorter = replace(dead, body=dead.body[:KEPT_CHARACTERS])
    bare = replace(shorter, attributes={**marks, MESSAGE_ID: Attribute("String", message.message_id)})
    return next((one for one in (dead, shorter) if size_bytes(one) <= MAXIMUM_BYTES), bare)


def _fifo(group: str, deduplication_id: str) -> dict[str, str]:
    return {"MessageGroupId": group, "MessageDeduplicationId": deduplication_id}


def _topic(key: RoutingKey) -> Attribute:
    if not key:
        return Attribute(EMPTY, "-")  # SQS allows no empty value
    return Attribute("String", key) if is_allowed(key) else Attribute(ESCAPED, json.dumps(key))


def topic_of(message: Message, problems: Problems) -> RoutingKey:
    """Return the routing key of a message, or an empty one with a problem."""
    attribute = message.attributes.get(TOPIC)
    if attribute is None or attribute.text is None or attribute.data_type.partition(".")[0] != "String":
        problems.add(TOPIC, "expected an attribute of type String that holds the routing key")
        return RoutingKey("")
    if attribute.data_type == EMPTY:
        return RoutingKey("")
    if attribute.data_type != ESCAPED:
        return _key(attribute.text, problems)
    try:
        return _key(str(json.loads(attribute.text)), problems)
    except (ValueError, RecursionError) as error:
        problems.add(TOPIC, f"is not JSON: {error}")
        return RoutingKey("")


def _key(text: str, problems: Problems) -> RoutingKey:
    try:
        return parse_routing_key(text)
    except InvalidRoutingKey as error:
        problems.add(TOPIC, str(error))
        return RoutingKey("")


def _check_size(properties: MessageProperties, problems: Problems) -> None:
    # In a retry-queue message, the headers are JSON within JSON.
    headers = len(json.dumps(headers_text(properties.headers))) if properties.headers else 0
    size = len(properties.body.encode(errors="replace")) + headers
    if size > MAXIMUM_BYTES - ROOM_BYTES:
        room = f"SQS allows {MAXIMUM_BYTES} (1 MiB), of which {ROOM_BYTES} are reserved for the exchange's attributes"
        problems.add("body", f"has {size} bytes with its headers; {room}")
