"""The input of filters: an SQS message with its attributes, including those in an SNS envelope, and its S3 objects."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.messages import Attribute, Message
from signalbox.splitting.model.s3_objects import BatchMetadata, S3Content


@dataclass(frozen=True, slots=True)
class FilterInput:
    """A message prepared once for all filters: its attribute lines, and the values by name in lower case.

    `s3` has the objects of an S3 event notification, for queues that a registry describes so.
    """

    message: Message
    lines: tuple[tuple[str, str], ...]
    values: Mapping[str, Sequence[str]]
    s3: S3Content | None = None

    @classmethod
    def of(cls, message: Message, *, sns: bool, metadata: BatchMetadata | None = None) -> "FilterInput":
        """Return the filter input of a message; with `sns`, including the attributes of an SNS envelope."""
        found = (*_lines(message.attributes), *_lines(envelope_attributes(message.body) if sns else {}))
        values: dict[str, list[str]] = {}
        for name, text in found:
            values.setdefault(name.casefold(), []).append(text)
        return cls(message, found, values, S3Content.of(message, metadata) if metadata else None)

    def documents(self, *, with_metadata: bool) -> Iterable[Mapping[str, Any]]:
        """Return the documents for jq programs: the SQS `Message` object, or one for each S3 object."""
        document = self.message.document
        return (document,) if self.s3 is None else self.s3.documents(document, with_metadata=with_metadata)


def _lines(attributes: Mapping[str, Attribute]) -> Iterator[tuple[str, str]]:
    for name, attribute in attributes.items():
        if (text := attribute.searchable) is not None:
            yield name, text


def envelope_attributes(body: str) -> dict[str, Attribute]:
    """Return the message attributes of an SNS notification; empty if the body is anything else."""
    try:
        envelope = json.loads(body)
    except (ValueError, RecursionError):  # a body may be nested deeper than Python can parse
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
