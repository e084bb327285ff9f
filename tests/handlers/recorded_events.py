"""Lambda events that were recorded on a running stage, and variations of them."""

import base64
import json
import time
from pathlib import Path
from typing import Any

from tests.fakes.aws import REGION

FOLDER = Path(__file__).with_name("events")
ACCOUNT = "123456789012"

Event = dict[str, Any]


def event(name: str) -> Event:
    """Return the recorded event of this name."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def request(name: str, *, body: str | bytes | None = None, **changes: object) -> Event:
    """Return an HTTP event with another body, method, path, query, address or headers."""
    found = event(name)
    if body is not None:
        found |= _body(body)
    if "path" in changes:
        found["rawPath"] = changes["path"]
    if "method" in changes:
        found["requestContext"]["http"]["method"] = changes["method"]
    if "source_ip" in changes:
        found["requestContext"]["http"]["sourceIp"] = changes["source_ip"]
    if "query" in changes:
        found["queryStringParameters"] = changes["query"]
    found["headers"] |= changes.get("headers", {})
    return found


def _body(body: str | bytes) -> Event:
    if isinstance(body, str):
        return {"body": body, "isBase64Encoded": False}
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}


def batch(*records: Event) -> Event:
    """Return an SQS event of these records."""
    return {"Records": list(records)}


def message(
    client_id: str | None = None, *, body: str | None = None, name: str = "offer", age_seconds: float = 0
) -> Event:
    """Return an SQS record that was received now and sent `age_seconds` ago, with other ids if a client is given."""
    (record,) = event(name)["Records"]
    if client_id is not None:
        record["messageAttributes"]["ClientID"]["stringValue"] = client_id
        record["messageId"] = f"message-of-{client_id}"
        record["receiptHandle"] = f"handle-of-{client_id}"
    if body is not None:
        record["body"] = body
    now = time.time()
    record["attributes"]["SentTimestamp"] = str(round((now - age_seconds) * 1000))
    record["attributes"]["ApproximateFirstReceiveTimestamp"] = str(round(now * 1000))
    return record


def record_of(message: Event, queue: str) -> Event:
    """Return a message that boto3 has received as the SQS record in a Lambda event."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {
            name: {
                "dataType": one["DataType"],
                "stringListValues": [],
                "binaryListValues": [],
                **({"stringValue": one["StringValue"]} if "StringValue" in one else {}),
                **({"binaryValue": base64.b64encode(one["BinaryValue"]).decode()} if "BinaryValue" in one else {}),
            }
            for name, one in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
        "md5OfMessageAttributes": message.get("MD5OfMessageAttributes"),
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        "awsRegion": REGION,
    }


def command_record(body: str, *, sender: str, queue: str) -> Event:
    """Return the SQS record of a command."""
    return {
        "messageId": "m-1",
        "receiptHandle": "h-1",
        "body": body,
        "attributes": {"SenderId": sender},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
    }


def client_id(record: Event) -> str:
    """Return the ClientID of a record."""
    return str(record["messageAttributes"]["ClientID"]["stringValue"])


def armored(response: dict) -> str:
    """Return the decoded payload of an AMP response."""
    text = "".join(response["body"].partition("<pre>")[2].partition("</pre>")[0].split())
    assert text[0] == "0"
    return base64.b64decode(text[1:]).decode()
