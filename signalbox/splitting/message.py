"""An SQS message as filters see it and as it is forwarded; an SNS envelope inside it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NewType

from signalbox.documents import Problems, Section
from signalbox.errors import RejectedError

MessageId = NewType("MessageId", str)


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


@dataclass(frozen=True, slots=True)
class Subject:
    """A message made ready for filters, once for all of them: its lines, and values by name in lower case."""

    message: Message
    lines: tuple[tuple[str, str], ...]
    values: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, message: Message, *, sns: bool) -> "Subject":
        """Return what filters look at; in an SNS envelope too, if asked to."""
        found = (*_lines(message.attributes), *_lines(envelope_attributes(message.body) if sns else {}))
        values: dict[str, tuple[str, ...]] = {}
        for name, text in found:
            key = name.casefold()
            values[key] = (*values.get(key, ()), text)
        return cls(message, found, values)


def _lines(attributes: Mapping[str, Attribute]) -> Iterator[tuple[str, str]]:
    for name, attribute in attributes.items():
        if (text := attribute.searchable) is not None:
            yield name, text


def envelope_attributes(body: str) -> dict[str, Attribute]:
    """Return the message attributes of an SNS notification; none when the body is anything else."""
    try:
        envelope = json.loads(body)
    except (ValueError, RecursionError):  # a body may be nested deeper than Python reads
        return {}
    if not isinstance(envelope, dict) or envelope.get("Type") != "Notification":
        return {}
    attributes = envelope.get("MessageAttributes")
    if not isinstance(attributes, dict):
        return {}
    return {name: attribute for name, value in attributes.items() if (attribute := _envelope_attribute(value))}


def _envelope_attribute(value: object) -> Attribute | None:
    if not isinstance(value, dict):
        return None
    data_type, text = value.get("Type"), value.get("Value")
    return Attribute(data_type, text) if isinstance(data_type, str) and isinstance(text, str) else None


def _attributes(section: Section) -> Iterator[tuple[str, Attribute]]:
    if section.fields.get("MessageAttributes") is None:
        return
    found = section.section("MessageAttributes")
    for name in found.fields:
        attribute = found.section(name)
        data_type = attribute.required_text("DataType")
        yield name, Attribute(data_type, attribute.text("StringValue"), attribute.text("BinaryValue"))
