"""A message as its consumer receives it from a queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from signalbox.documents import Problems
from signalbox.errors import RejectedError
from signalbox.exchange.messages.headers import OWN_NAMES, unpacked
from signalbox.exchange.messages.properties import MESSAGE_ID, PUBLISHER, topic_of
from signalbox.exchange.model.topics import RoutingKey, shown
from signalbox.messages import Attribute, Message, MessageId
from signalbox.sarracenia.rights.names import ExchangeName, InvalidExchangeName, parse_exchange_name

NAME_LENGTH = 200  # of SQS message ids, user names, and SenderIds, whose parts have 21 and 64 characters
NUMBER_LENGTH = 14  # milliseconds since 1970 have 13 digits until 2286


class InvalidDelivery(RejectedError):
    """Raised when a message of a queue was not sent by an exchange: it lacks a property, or has an impossible one."""


@dataclass(frozen=True, slots=True)
class DeliveredMessage:
    """A message as its consumer receives it; `sequence` is its number within its key on an ordered exchange."""

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
        """Return the delivered message. Raises `InvalidDelivery` with all missing properties."""
        problems = Problems()
        attributes = message.attributes
        if "exchange" not in attributes:
            raise InvalidDelivery("no exchange sent it: the attribute `exchange` is missing")
        delivered = cls(
            key=topic_of(message, problems),
            body=message.body,
            attributes=unpacked(attributes, problems, without=OWN_NAMES),
            exchange=_exchange(attributes, problems),
            message_id=MessageId(_name(attributes, MESSAGE_ID, problems)),
            publisher=_name(attributes, PUBLISHER, problems),
            published_at=_moment(attributes, "published_at", problems) or _missing("published_at", problems),
            sequence=_number(attributes, "sequence", problems),
            expires_at=_moment(attributes, "expires_at", problems),
        )
        problems.refuse(InvalidDelivery)
        return delivered

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the publisher's headers as texts; a number is its digits, a binary value its base64 text."""
        return {name: one.text or one.base64 or "" for name, one in self.attributes.items()}

    def has_expired(self, now: float) -> bool:
        """Return whether the message is older than its queue's message TTL; `now` is in seconds since 1970."""
        return self.expires_at is not None and self.expires_at.timestamp() <= now


def _text(attributes: Mapping[str, Attribute], name: str, problems: Problems) -> str:
    attribute = attributes.get(name)
    if attribute is None or not attribute.text:
        problems.add(name, "is missing")
        return ""
    return attribute.text


def _exchange(attributes: Mapping[str, Attribute], problems: Problems) -> ExchangeName:
    try:
        return parse_exchange_name(_text(attributes, "exchange", problems))
    except InvalidExchangeName as error:
        problems.add("exchange", str(error))
        return ExchangeName("")


def _name(attributes: Mapping[str, Attribute], name: str, problems: Problems) -> str:
    text = _text(attributes, name, problems)
    if len(text) > NAME_LENGTH or not text.isprintable():
        problems.add(name, f"expected {NAME_LENGTH} printable characters at most, not {shown(text)}")
    return text


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
