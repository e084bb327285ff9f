"""Conversion between boto3's SQS messages (binary values as bytes) and the core's (base64 text)."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from signalbox.messages import Message

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageTypeDef, SendMessageBatchRequestEntryTypeDef

BINARY = "BinaryValue"


def message_of(received: "MessageTypeDef") -> Message:
    """Return the core's message for a message of ReceiveMessage. Raises `NotAMessage`."""
    document: dict[str, Any] = {**received}
    if "MessageAttributes" in document:
        attributes = document["MessageAttributes"].items()
        document["MessageAttributes"] = {name: _with_base64(attribute) for name, attribute in attributes}
    return Message.parse(document)


def batch_entry(entry_id: str, arguments: Mapping[str, object]) -> "SendMessageBatchRequestEntryTypeDef":
    """Return the SendMessageBatch entry for the arguments of a SendMessage call (see `outgoing`)."""
    entry: dict[str, Any] = {**arguments, "Id": entry_id}
    if "MessageAttributes" in entry:
        attributes = entry["MessageAttributes"].items()
        entry["MessageAttributes"] = {name: _with_bytes(attribute) for name, attribute in attributes}
    # `outgoing` belongs to the core, which has no boto3 types.
    return cast("SendMessageBatchRequestEntryTypeDef", entry)


def _with_base64(attribute: Mapping[str, Any]) -> dict[str, Any]:
    if BINARY not in attribute:
        return {**attribute}
    return {**attribute, BINARY: base64.b64encode(attribute[BINARY]).decode()}


def _with_bytes(attribute: Mapping[str, Any]) -> dict[str, Any]:
    if BINARY not in attribute:
        return {**attribute}
    return {**attribute, BINARY: base64.b64decode(attribute[BINARY])}
