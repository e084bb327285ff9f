"""An SQS message as it was received, and as it is sent on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NewType

from signalbox.documents import Problems, Section
from signalbox.errors import RejectedError

MessageId = NewType("MessageId", str)

MAXIMUM_BYTES = 1_048_576  # SQS: of one message, and of all messages of one call
TRACE_HEADER = "AWSTraceHeader"


class InvalidMessage(RejectedError):
    """Raised when a JSON object is not an SQS `Message`."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A message attribute. A binary value is kept as the base64 text that JSON has for it."""

    data_type: str
    text: str | None = None
    base64: str | None = None

    @property
    def value(self) -> dict[str, str]:
        """Return the attribute as SQS's JSON has it."""
        told = {"DataType": self.data_type}
        if self.text is not None:
            told["StringValue"] = self.text
        if self.base64 is not None:
            told["BinaryValue"] = self.base64
        return told

    @property
    def searchable(self) -> str | None:
        """Return the text that filters look at: a number's digits, never a binary value."""
        return None if self.data_type.partition(".")[0] == "Binary" else self.text


@dataclass(frozen=True, slots=True)
class Message:
    """One received message; `document` is the SQS `Message` object that jq programs run on."""

    message_id: MessageId
    body: str
    attributes: Mapping[str, Attribute]
    system_attributes: Mapping[str, str]
    document: Mapping[str, object]

    @classmethod
    def parse(cls, value: object, *, path: str = "message") -> "Message":
        """Return the message in an SQS `Message` object (ReceiveMessage). Raises `InvalidMessage`."""
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
        problems.refuse(InvalidMessage)
        return message

    @property
    def group_id(self) -> str | None:
        """Return the message group, which messages of FIFO queues have."""
        return self.system_attributes.get("MessageGroupId")

    @property
    def deduplication_id(self) -> str | None:
        """Return the deduplication id, which messages of FIFO queues have."""
        return self.system_attributes.get("MessageDeduplicationId")

    @property
    def first_received_at(self) -> datetime | None:
        """Return when the message was received for the first time, if SQS was asked for that."""
        milliseconds = self.system_attributes.get("ApproximateFirstReceiveTimestamp")
        return datetime.fromtimestamp(int(milliseconds) / 1000, UTC) if milliseconds else None


def outgoing(message: Message) -> dict[str, object]:
    """Return what SendMessage is told, so that the receiver gets the message as it was sent first."""
    told: dict[str, object] = {"MessageBody": message.body}
    if message.attributes:
        told["MessageAttributes"] = {name: attribute.value for name, attribute in message.attributes.items()}
    if message.group_id is not None:
        told["MessageGroupId"] = message.group_id
    if message.deduplication_id is not None:
        told["MessageDeduplicationId"] = message.deduplication_id
    if TRACE_HEADER in message.system_attributes:
        header = {"DataType": "String", "StringValue": message.system_attributes[TRACE_HEADER]}
        told["MessageSystemAttributes"] = {TRACE_HEADER: header}
    return told


def size_bytes(message: Message) -> int:
    """Return what a message counts for against SQS's limits: its body, and names, types and values of attributes."""
    size = _bytes(message.body)
    for name, attribute in message.attributes.items():
        size += _bytes(name) + _bytes(attribute.data_type)
        if attribute.text is not None:
            size += _bytes(attribute.text)
        if attribute.base64 is not None:
            size += len(attribute.base64) * 3 // 4
    return size


def _bytes(text: str) -> int:
    # Counted several times for each copy of a message, of which most texts need no encoding.
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _attributes(section: Section) -> Iterator[tuple[str, Attribute]]:
    if section.fields.get("MessageAttributes") is None:
        return
    found = section.section("MessageAttributes")
    for name in found.fields:
        attribute = found.section(name)
        data_type = attribute.required_text("DataType")
        yield name, Attribute(data_type, attribute.text("StringValue"), attribute.text("BinaryValue"))
