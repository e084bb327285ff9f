"""The event with which Lambda invokes a function for messages of an SQS queue."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

EVENT_SOURCE = "aws:sqs"


def sqs_event(messages: Iterable[Mapping[str, Any]], *, queue_arn: str) -> dict[str, Any]:
    """Return the event for messages in boto3's form; `queue_arn` is the queue that the function is mapped to.

    https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html#example-standard-queue-message-event
    """
    return {"Records": [_record(message, queue_arn) for message in messages]}


def _record(message: Mapping[str, Any], queue_arn: str) -> dict[str, Any]:
    attributes = message.get("MessageAttributes", {})
    record: dict[str, Any] = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {name: _attribute(value) for name, value in attributes.items()},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": EVENT_SOURCE,
        "eventSourceARN": queue_arn,
        "awsRegion": queue_arn.split(":")[3],
    }
    if "MD5OfMessageAttributes" in message:  # Lambda omits it for a message without attributes
        record["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    return record


def _attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if "StringValue" in value:
        shown["stringValue"] = value["StringValue"]
    if "BinaryValue" in value:
        shown["binaryValue"] = base64.b64encode(value["BinaryValue"]).decode()
    # SQS has no lists, but Lambda's event has.
    return shown | {"stringListValues": [], "binaryListValues": [], "dataType": value["DataType"]}
