"""Messages of SQS as kombu's: what another program wrote is a text, and no message stops a consumer."""

import json

import pytest
from kombu.utils.json import dumps

from signalbox.kombu.messages import Received

SENT_AT = 1_000_000


def received(body: str, *, times: int = 1, **attributes: str) -> Received:
    return Received.parse(
        {
            "Body": body,
            "ReceiptHandle": "receipt",
            "Attributes": {"SentTimestamp": str(SENT_AT), "ApproximateReceiveCount": str(times)},
            "MessageAttributes": {name: {"StringValue": text} for name, text in attributes.items()},
        }
    )


def body(**properties: object) -> str:
    info = {"exchange": "tasks", "routing_key": "a.b"}
    return dumps({"body": "{}", "headers": {"id": 1}, "properties": {"delivery_info": info, **properties}})


def test_a_message_of_kombu_is_read_as_it_was_written():
    found = received(body(priority=6, expiration="2000"), times=2)

    assert found.payload["headers"] == {"id": 1}
    expected = {"exchange": "tasks", "routing_key": "a.b", "redelivered": True}
    assert found.payload["properties"]["delivery_info"] == expected
    assert (found.priority, found.sent_at, found.expires_at) == (6, SENT_AT, SENT_AT + 2000)


def test_the_times_of_the_exchange_count():
    found = received(body(expiration="9000"), published_at="900000", expires_at="905000")

    assert (found.sent_at, found.expires_at) == (900_000, 905_000)


@pytest.mark.parametrize(
    "text",
    [
        "storm",
        "7",
        "[" * 100_000,
        "null",
        '{"a": 1}',
        '{"body": "", "properties": 1}',
        '{"body": "", "properties": {}}',
        '{"properties": {"delivery_info": {"exchange": ""}}}',
        json.dumps({"body": "", "properties": {"delivery_info": {"exchange": ""}, "priority": "high"}}),
        json.dumps({"body": "", "properties": {"delivery_info": {"exchange": ""}, "expiration": [1]}}),
    ],
)
def test_a_message_of_another_program_is_a_text(text: str):
    found = received(text, topic="v03.radar", exchange="xpublic")

    assert (found.payload["body"], found.payload["content-type"]) == (text, "text/plain")
    expected = {"exchange": "xpublic", "routing_key": "v03.radar", "redelivered": False}
    assert found.payload["properties"]["delivery_info"] == expected
