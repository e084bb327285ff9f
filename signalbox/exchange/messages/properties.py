"""The properties of a message: what a publisher says of it, and what its consumers are told."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from signalbox.documents import Problems
from signalbox.errors import RejectedError
from signalbox.exchange.messages.headers import HEADERS, OWN_NAMES, headers_text, is_allowed, packed, unpacked
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import InvalidRoutingKey, RoutingKey, parse_routing_key, shown
from signalbox.messages import MAXIMUM_BYTES, TRACE_HEADER, Attribute, Message, MessageId, size_bytes
from signalbox.sarracenia.rights.names import ExchangeName

# `live` is what a session says of what it publishes.
TOPIC, PUBLISHER, LIVE = "topic", "publisher", "live"
EMPTY, ESCAPED = "String.empty", "String.json"
# What the exchange says of a message beside its headers; it must find room in each copy, and in a dead letter.
ROOM_BYTES = 4_096
GROUP_LENGTH = 128  # SQS, MessageGroupId: printable ASCII without the space
HASHED = "sha256-"
ONE_GROUP = RoutingKey("exchange")  # of an exchange that keeps the order of all that is published to it
GROUPS_OF = {
    OrderBy.TOPIC: "its routing key",
    OrderBy.PUBLISHER: "its publisher",
    OrderBy.EXCHANGE: "all that is published to this exchange",
}
KEPT_CHARACTERS = 100_000  # of the body of a dead letter that would leave no room for its reason
REASON_CHARACTERS = 1_000
NUMBER_LENGTH = 14  # a time in milliseconds has 13 digits, and will for a while


class InvalidPublication(RejectedError):
    """Raised when a message cannot be published, or was published in a way that no exchange takes."""


class InvalidDelivery(RejectedError):
    """Raised when a message of a queue did not come through an exchange."""


@dataclass(frozen=True, slots=True)
class MessageProperties:
    """A publication: its routing key, its payload and its publisher's headers."""

    key: RoutingKey
    body: str
    headers: Mapping[str, Attribute]

    @classmethod
    def of_publication(
        cls, routing_key: str, body: str, headers: Mapping[str, str] | None = None
    ) -> "MessageProperties":
        """Return what is to be published. Raises `InvalidPublication` with all that is wrong with it."""
        problems = Problems()
        key = _key(routing_key, problems)
        if not body:
            problems.add("body", "is empty; SQS takes no message without at least one character")
        elif not is_allowed(body):
            problems.add("body", "has characters that SQS does not take: control characters, or half of a pair")
        attributes = {name: Attribute("String", text) for name, text in (headers or {}).items()}
        properties = cls(key, body, attributes)
        _check_size(properties, problems)
        problems.refuse(InvalidPublication)
        return properties

    @classmethod
    def from_published(cls, message: Message, *, own_names: Collection[str] = (TOPIC,)) -> "MessageProperties":
        """Return what was published with a message of an exchange's queue. Raises `InvalidPublication`.

        Attributes of `own_names` are no headers.
        """
        problems = Problems()
        key = _topic_of(message, problems)
        properties = cls(key, message.body, unpacked(message.attributes, problems, without=own_names))
        _check_size(properties, problems)
        problems.refuse(InvalidPublication)
        return properties

    def check_group(self, message: Message, order_by: OrderBy, *, publisher: str) -> None:
        """Refuse a message of an ordered exchange whose group is not as it should be. Raises `InvalidPublication`."""
        expected = _group(self.key, order_by, publisher)
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
        """Return the message for the exchange's queue; only an ordered exchange asks for a de-duplication id.

        A publisher is named by who publishes for somebody else; of all others it is a header, and who publishes is
        the `sender`.
        """
        own = {TOPIC: _topic(self.key)}
        if publisher is not None:
            own[PUBLISHER] = Attribute("String", publisher)
        group = _group(self.key, order_by, publisher or sender)
        system = {} if deduplication_id is None else _fifo(group, deduplication_id)
        return _message(MessageId(""), self.body, packed(own, self.headers), system)

    def delivered(
        self,
        published: Message,
        *,
        exchange: ExchangeName,
        publisher: str,
        sequence: int | None,
        expires_at: datetime | None,
        is_fifo: bool,
    ) -> Message:
        """Return the copy for a queue of a publication that came as the message `published`."""
        own = {
            TOPIC: _topic(self.key),
            "exchange": Attribute("String", exchange),
            "message_id": Attribute("String", published.message_id),
            PUBLISHER: Attribute("String", publisher),
            "published_at": Attribute("Number", published.system_attributes["SentTimestamp"]),
        }
        if sequence is not None:
            own["sequence"] = Attribute("Number", str(sequence))
        if expires_at is not None:
            own["expires_at"] = Attribute("Number", str(round(expires_at.timestamp() * 1000)))
        system = _fifo(group_of(self.key), published.message_id) if is_fifo else {}
        if TRACE_HEADER in published.system_attributes:
            system[TRACE_HEADER] = published.system_attributes[TRACE_HEADER]
        return _message(published.message_id, self.body, packed(own, self.headers), system)


@dataclass(frozen=True, slots=True)
class DeliveredMessage:
    """A message as its consumer sees it; `sequence` counts the messages of a routing key on an ordered exchange."""

    key: RoutingKey
    body: str
    attributes: Mapping[str, Attribute]
    exchange: ExchangeName
    message_id: MessageId
    publisher: str
    published_at: datetime
    sequence: int | None
    expires_at: datetime | None

    @classmethod
    def parse(cls, message: Message) -> "DeliveredMessage":
        """Return what was delivered. Raises `InvalidDelivery` with all that is missing."""
        problems = Problems()
        attributes = message.attributes
        delivered = cls(
            key=_topic_of(message, problems),
            body=message.body,
            attributes=unpacked(attributes, problems, without=OWN_NAMES),
            exchange=ExchangeName(_text(attributes, "exchange", problems)),
            message_id=MessageId(_text(attributes, "message_id", problems)),
            publisher=_text(attributes, PUBLISHER, problems),
            published_at=_moment(attributes, "published_at", problems) or _missing("published_at", problems),
            sequence=_number(attributes, "sequence", problems),
            expires_at=_moment(attributes, "expires_at", problems),
        )
        problems.refuse(InvalidDelivery)
        return delivered

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the publisher's headers as texts: a number's digits, the base64 text of what is binary."""
        return {name: one.text or one.base64 or "" for name, one in self.attributes.items()}

    def has_expired(self, now: float) -> bool:
        """Say whether the message is older than its queue lets messages become; `now` is in seconds since 1970."""
        return self.expires_at is not None and self.expires_at.timestamp() <= now


def group_of(key: RoutingKey) -> str:
    """Return the message group of a routing key; no two keys have the same."""
    is_group = 1 <= len(key) <= GROUP_LENGTH and all("!" <= character <= "~" for character in key)
    # A key that looks like a hash gets one, too: it could be that of another.
    return key if is_group and not key.startswith(HASHED) else HASHED + hashlib.sha256(key.encode()).hexdigest()


def _group(key: RoutingKey, order_by: OrderBy, publisher: str) -> str:
    groups = {OrderBy.TOPIC: key, OrderBy.PUBLISHER: RoutingKey(publisher), OrderBy.EXCHANGE: ONE_GROUP}
    return group_of(groups[order_by])


def dead_letter_message(message: Message, *, reason: str, is_fifo: bool) -> Message:
    """Return a message as it is put into a dead-letter queue: as it was, and with the reason.

    Where there is no room for the reason, headers move into one attribute, and of the body only the beginning is kept.
    """
    own = {name: one for name, one in message.attributes.items() if name in OWN_NAMES and name != HEADERS}
    reasons = {"Reason": Attribute("String", "".join(filter(is_allowed, reason))[:REASON_CHARACTERS])}
    problems = Problems()
    headers = unpacked(message.attributes, problems, without=OWN_NAMES)
    attributes = (
        {**reasons, HEADERS: Attribute("String", headers_text(message.attributes))}  # as they were: they cannot be read
        if problems.found
        else packed(own | reasons, headers)
    )
    system = _fifo(message.group_id or message.message_id, message.message_id) if is_fifo else {}
    dead = _message(message.message_id, message.body, attributes, system)
    return dead if size_bytes(dead) <= MAXIMUM_BYTES else replace(dead, body=dead.body[:KEPT_CHARACTERS])


def _message(
    message_id: MessageId, body: str, attributes: Mapping[str, Attribute], system: Mapping[str, str]
) -> Message:
    return Message(message_id, body, attributes, system, document={})


def _fifo(group: str, deduplication_id: str) -> dict[str, str]:
    return {"MessageGroupId": group, "MessageDeduplicationId": deduplication_id}


def _topic(key: RoutingKey) -> Attribute:
    if not key:
        return Attribute(EMPTY, "-")  # SQS takes no empty value
    return Attribute("String", key) if is_allowed(key) else Attribute(ESCAPED, json.dumps(key))


def _topic_of(message: Message, problems: Problems) -> RoutingKey:
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
        problems.add(TOPIC, f"is no JSON: {error}")
        return RoutingKey("")


def _key(text: str, problems: Problems) -> RoutingKey:
    try:
        return parse_routing_key(text)
    except InvalidRoutingKey as error:
        problems.add(TOPIC, str(error))
        return RoutingKey("")


def _check_size(properties: MessageProperties, problems: Problems) -> None:
    # Of a copy that has to be tried again, the headers are a text in a text.
    headers = len(json.dumps(headers_text(properties.headers))) if properties.headers else 0
    size = len(properties.body.encode(errors="replace")) + headers
    if size > MAXIMUM_BYTES - ROOM_BYTES:
        room = f"SQS takes {MAXIMUM_BYTES} (1 MiB), and {ROOM_BYTES} of them are for what the exchange adds"
        problems.add("body", f"has {size} bytes with its headers; {room}")


def _text(attributes: Mapping[str, Attribute], name: str, problems: Problems) -> str:
    attribute = attributes.get(name)
    if attribute is None or not attribute.text:
        problems.add(name, "is missing")
        return ""
    return attribute.text


def _number(attributes: Mapping[str, Attribute], name: str, problems: Problems) -> int | None:
    text = attributes[name].text if name in attributes else None
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= NUMBER_LENGTH):
        problems.add(name, f"expected a whole number, not {shown(text)}")
        return None
    return int(text)


def _moment(attributes: Mapping[str, Attribute], name: str, problems: Problems) -> datetime | None:
    number = _number(attributes, name, problems)
    return None if number is None else datetime.fromtimestamp(number / 1000, UTC)


def _missing(name: str, problems: Problems) -> datetime:
    problems.add(name, "is missing")
    return datetime.fromtimestamp(0, UTC)
