"""SQS messages as boto3 gives and takes them, and as the core has them: binary values are bytes here, base64 there."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from signalbox.messages import Message

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageTypeDef, SendMessageBatchRequestEntryTypeDef

BINARY = "BinaryValue"


def message_of(received: "MessageTypeDef") -> Message:
    """Return a message that ReceiveMessage gave. Raises `InvalidMessage`."""
    document: dict[str, Any] = {**received}
    if "MessageAttributes" in document:
        attributes = document["MessageAttributes"].items()
        document["MessageAttributes"] = {name: _with_base64(attribute) for name, attribute in attributes}
    return Message.parse(document)


def batch_entry(entry_id: str, told: Mapping[str, object]) -> "SendMessageBatchRequestEntryTypeDef":
    """Return what SendMessageBatch is told of a message, from what SendMessage would be (`outgoing`, `returned`)."""
    entry: dict[str, Any] = {**told, "Id": entry_id}
    if "MessageAttributes" in entry:
        attributes = entry["MessageAttributes"].items()
        entry["MessageAttributes"] = {name: _with_bytes(attribute) for name, attribute in attributes}
    # `outgoing` is of the core, which does not know boto3's types.
    return cast("SendMessageBatchRequestEntryTypeDef", entry)


def _with_base64(attribute: Mapping[str, Any]) -> dict[str, Any]:
    if BINARY not in attribute:
        return {**attribute}
    return {**attribute, BINARY: base64.b64encode(attribute[BINARY]).decode()}


def _with_bytes(attribute: Mapping[str, Any]) -> dict[str, Any]:
    if BINARY not in attribute:
        return {**attribute}
    return {**attribute, BINARY: base64.b64decode(attribute[BINARY])}
