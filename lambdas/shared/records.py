"""What Lambda hands over of an SQS queue, as the messages that they are, and its answer."""

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
    """Return the SQS `Message` that Lambda has made a record of; a binary value is base64 text in both."""
    document = {name: record[field] for field, name in FIELDS.items() if record.get(field) is not None}
    attributes = {
        name: {told: value[field] for field, told in ATTRIBUTE_FIELDS.items() if value.get(field) is not None}
        for name, value in record.get("messageAttributes", {}).items()
    }
    return document | ({"MessageAttributes": attributes} if attributes else {})


def in_flight(message_ids: Iterable[str]) -> dict[str, Any]:
    """Return the answer by which Lambda leaves messages where they are, and deletes the others."""
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in message_ids]}
