"""Lambda's event for messages of SQS."""

from typing import Any

from signalbox.clients.splitting.handler.event import sqs_event

ARN = "arn:aws-cn:sqs:cn-north-1:123456789012:memes.fifo"
ATTRIBUTES = {
    "ApproximateReceiveCount": "2",
    "SentTimestamp": "1573251510774",
    "SequenceNumber": "18849496460467696128",
    "MessageGroupId": "1",
    "SenderId": "AIDAIO23YVJENQZJOL4VO",
    "MessageDeduplicationId": "1",
    "ApproximateFirstReceiveTimestamp": "1573251510774",
    "AWSTraceHeader": "Root=1-5759e988-bd862e3fe1be46a994272793",
}


def message(**more: Any) -> dict[str, Any]:
    return {
        "MessageId": "11d6ee51-4cc7-4302-9e22-7cd8afdaadf5",
        "ReceiptHandle": "AQEBBX8nesZEXmkhsmZeyIE8iQAMig7qw",
        "MD5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
        "Body": "Test message.",
        "Attributes": ATTRIBUTES,
        **more,
    }


def test_the_event_has_the_form_of_awss_example():
    # https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html#sample-fifo-queues-message-event
    assert sqs_event([message()], queue_arn=ARN) == {
        "Records": [
            {
                "messageId": "11d6ee51-4cc7-4302-9e22-7cd8afdaadf5",
                "receiptHandle": "AQEBBX8nesZEXmkhsmZeyIE8iQAMig7qw",
                "body": "Test message.",
                "attributes": ATTRIBUTES,
                "messageAttributes": {},
                "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
                "eventSource": "aws:sqs",
                "eventSourceARN": ARN,
                "awsRegion": "cn-north-1",
            }
        ]
    }


def test_message_attributes_have_lambdas_form():
    attributes = {
        "text": {"DataType": "String", "StringValue": "one"},
        "count": {"DataType": "Number.int", "StringValue": "7"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }

    (record,) = sqs_event([message(MessageAttributes=attributes, MD5OfMessageAttributes="18e3")], queue_arn=ARN)[
        "Records"
    ]

    lists: dict[str, list[str]] = {"stringListValues": [], "binaryListValues": []}
    assert record["messageAttributes"] == {
        "text": {"stringValue": "one", "dataType": "String", **lists},
        "count": {"stringValue": "7", "dataType": "Number.int", **lists},
        "raw": {"binaryValue": "AP8=", "dataType": "Binary", **lists},
    }
    assert record["md5OfMessageAttributes"] == "18e3"
