"""Conversion of Lambda's SQS records into messages, and the partial batch response."""

from collections.abc import Iterable, Mapping
from typing import Any

from signalbox.messages import Message

FIELDS = {
    "messageId": "MessageId",
    "receiptHandle": "ReceiptHandle",
    "md5OfBody": "MD5OfBody",
    "body": "Body",
    "attributes": "Attributes",
    "md5OfMessageAttributes": "MD5OfMessageAttributes",
}
ATTRIBUTE_FIELDS = {"dataType": "DataType", "stringValue": "StringValue", "binaryValue": "BinaryValue"}


def messages_of(records: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Return the messages in records."""
    return [Message.parse(as_document(record)) for record in records]


def as_document(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the SQS `Message` object of a record; a binary value is base64 text in both."""
    document = {name: record[field] for field, name in FIELDS.items() if record.get(field) is not None}
    attributes = {
        name: {name: value[field] for field, name in ATTRIBUTE_FIELDS.items() if value.get(field) is not None}
        for name, value in record.get("messageAttributes", {}).items()
    }
    return document | ({"MessageAttributes": attributes} if attributes else {})


def in_flight(message_ids: Iterable[str]) -> dict[str, Any]:
    """Return the partial batch response that keeps these messages in flight; Lambda deletes the others."""
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in message_ids]}
