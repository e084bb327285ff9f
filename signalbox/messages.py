"""SQS messages: as received, and as sent again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NewType

from signalbox.documents import Problems, Section
from signalbox.errors import RejectedError

MessageId = NewType("MessageId", str)

MAXIMUM_BYTES = 1_048_576  # SQS: for one message, and for all messages of one batch
TRACE_HEADER = "AWSTraceHeader"


class NotAMessage(RejectedError):
    """Raised when a JSON object is not an SQS `Message`."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A message attribute; a binary value is base64 text, as in JSON."""

    data_type: str
    text: str | None = None
    base64: str | None = None

    @property
    def value(self) -> dict[str, str]:
        """Return the `MessageAttributeValue` of SQS's JSON."""
        document = {"DataType": self.data_type}
        if self.text is not None:
            document["StringValue"] = self.text
        if self.base64 is not None:
            document["BinaryValue"] = self.base64
        return document

    @property
    def searchable(self) -> str | None:
        """Return the text that filters match: String and Number values; None for a binary value."""
        return None if self.data_type.partition(".")[0] == "Binary" else self.text


@dataclass(frozen=True, slots=True)
class Message:
    """A message; `document` is the SQS `Message` object of a received one, the input of jq programs."""

    message_id: MessageId
    body: str
    attributes: Mapping[str, Attribute]
    system_attributes: Mapping[str, str]
    document: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: object, *, path: str = "message") -> "Message":
        """Return the message of an SQS `Message` object (ReceiveMessage). Raises `NotAMessage`."""
        problems = Problems()
        section = Section.of(value, path, problems)
        if "Body" not in section.fields:
            section.problem("Body", "is missing")
        message = cls(
            message_id=MessageId(section.text("MessageId") or ""),
            body=section.text("Body") or "",
            attributes=dict(_attributes(section)),
            system_attributes=section.texts_by_name("Attributes") or {},
            document=section.fields,
        )
        problems.refuse(NotAMessage)
        return message

    @property
    def group_id(self) -> str | None:
        """Return the message group: of a FIFO queue the unit of order, of a standard queue that of fairness, if any."""
        return self.system_attributes.get("MessageGroupId")

    @property
    def deduplication_id(self) -> str | None:
        """Return the deduplication id; None outside FIFO queues."""
        return self.system_attributes.get("MessageDeduplicationId")

    @property
    def sent_at(self) -> datetime:
        """Return the time when the message was sent."""
        return moment(self.system_attributes["SentTimestamp"])

    @property
    def first_received_at(self) -> datetime | None:
        """Return the time of the first receive, or None when the call did not request that attribute."""
        milliseconds = self.system_attributes.get("ApproximateFirstReceiveTimestamp")
        return moment(milliseconds) if milliseconds else None


def moment(milliseconds: str) -> datetime:
    """Return the time that SQS states in an attribute of a message, in milliseconds since 1970."""
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def outgoing(message: Message) -> dict[str, object]:
    """Return the arguments of SendMessage that send a message again unchanged."""
    arguments: dict[str, object] = {"MessageBody": message.body}
    if message.attributes:
        arguments["MessageAttributes"] = {name: attribute.value for name, attribute in message.attributes.items()}
    if message.group_id is not None:
        arguments["MessageGroupId"] = message.group_id
    if message.deduplication_id is not None:
        arguments["MessageDeduplicationId"] = message.deduplication_id
    if TRACE_HEADER in message.system_attributes:
        header = {"DataType": "String", "StringValue": message.system_attributes[TRACE_HEADER]}
        arguments["MessageSystemAttributes"] = {TRACE_HEADER: header}
    return arguments


def size_bytes(message: Message) -> int:
    """Return the size of a message as SQS counts it: body, and names, types and values of attributes."""
    size = _bytes(message.body)
    for name, attribute in message.attributes.items():
        size += _bytes(name) + _bytes(attribute.data_type)
        if attribute.text is not None:
            size += _bytes(attribute.text)
        if attribute.base64 is not None:
            size += len(attribute.base64) * 3 // 4
    return size


def _bytes(text: str) -> int:
    # Called several times for each copy of a message; most texts are ASCII and need no encoding.
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _attributes(section: Section) -> Iterator[tuple[str, Attribute]]:
    if section.fields.get("MessageAttributes") is None:
        return
    found = section.section("MessageAttributes")
    for name in found.fields:
        attribute = found.section(name)
        data_type = attribute.required_text("DataType")
        yield name, Attribute(data_type, attribute.text("StringValue"), attribute.text("BinaryValue"))
