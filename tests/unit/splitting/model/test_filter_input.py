"""SQS messages and SNS envelopes as filter input."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.messages import Attribute, Message, NotAMessage
from signalbox.splitting.model.filter_input import FilterInput, envelope_attributes

SQS_MESSAGE = {
    "MessageId": "219f8380-5770-4cc2-8c3e-5c715e145f5e",
    "ReceiptHandle": "AQEB",
    "MD5OfBody": "d41d8cd98f00b204e9800998ecf8427e",
    "Body": '{"important": true}',
    "Attributes": {
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        "ApproximateFirstReceiveTimestamp": "1795262400500",
    },
    "MessageAttributes": {
        "tenant": {"DataType": "String", "StringValue": "Avi.Test"},
        "size": {"DataType": "Number.int", "StringValue": "42"},
        "picture": {"DataType": "Binary.png", "BinaryValue": "iVBORw=="},
    },
}
ENVELOPE = {
    "Type": "Notification",
    "TopicArn": "arn:aws:sns:eu-north-1:314159265359:Uploads",
    "Message": "hello",
    "MessageAttributes": {
        "region": {"Type": "String", "Value": "eu-west"},
        "size": {"Type": "Number", "Value": "7"},
        "digest": {"Type": "Binary", "Value": "iVBORw=="},
    },
}


def message(body: str = "", **attributes: str) -> Message:
    found = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    return Message.parse({"Body": body, "MessageAttributes": found})


def test_a_message_is_read_as_sqs_returns_it():
    parsed = Message.parse(SQS_MESSAGE)

    assert parsed.message_id == "219f8380-5770-4cc2-8c3e-5c715e145f5e"
    assert parsed.body == '{"important": true}'
    assert parsed.attributes["size"] == Attribute("Number.int", "42")
    assert parsed.attributes["picture"].value == {"DataType": "Binary.png", "BinaryValue": "iVBORw=="}
    assert (parsed.group_id, parsed.deduplication_id) == ("g", "d")
    assert parsed.first_received_at.isoformat() == "2026-11-21T12:00:00.500000+00:00"
    assert parsed.document == SQS_MESSAGE


def test_a_message_needs_no_more_than_a_body():
    parsed = Message.parse({"Body": ""})

    assert FilterInput.of(parsed, sns=True).lines == ()
    assert (parsed.group_id, parsed.deduplication_id, parsed.first_received_at) == (None, None, None)


def test_all_problems_of_a_message_are_reported_together():
    with pytest.raises(NotAMessage) as refusal:
        Message.parse({"MessageId": 5, "Attributes": {"SentTimestamp": 1}, "MessageAttributes": {"a": 1, "b": {}}})

    assert str(refusal.value).splitlines() == [
        "message.Body: is missing",
        "message.MessageId: expected a text, not 5",
        "message.MessageAttributes.a: expected an object, not 1",
        "message.MessageAttributes.a.DataType: is missing or empty",
        "message.MessageAttributes.b.DataType: is missing or empty",
        "message.Attributes.SentTimestamp: expected a text, not 1",
    ]


def test_filters_see_numbers_by_their_text_and_binary_values_never():
    """Wire page, A.2."""
    assert FilterInput.of(Message.parse(SQS_MESSAGE), sns=False).lines == (("tenant", "Avi.Test"), ("size", "42"))


def test_filters_see_the_attributes_of_the_message_and_of_an_sns_envelope():
    both = message(json.dumps(ENVELOPE), tenant="a")

    assert FilterInput.of(both, sns=True).lines == (("tenant", "a"), ("region", "eu-west"), ("size", "7"))
    assert FilterInput.of(both, sns=False).lines == (("tenant", "a"),)


def test_filters_ignore_the_case_of_names():
    assert FilterInput.of(message(Tenant="a", tenant="b"), sns=False).values == {"tenant": ["a", "b"]}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("not json", id="no JSON"),
        pytest.param("[" * 100_000, id="too deep"),
        pytest.param('["Notification"]', id="a list"),
        pytest.param('{"MessageAttributes": {"region": {"Type": "String", "Value": "eu"}}}', id="another object"),
        pytest.param('{"Type": "SubscriptionConfirmation"}', id="another type"),
        pytest.param('{"Type": "Notification"}', id="without attributes"),
        pytest.param('{"Type": "Notification", "MessageAttributes": []}', id="attributes in a list"),
        pytest.param(
            '{"Type": "Notification", "MessageAttributes": {"a": 1, "b": {}, "c": {"Type": "String"}}}', id="odd"
        ),
    ],
)
def test_what_is_not_an_envelope_has_no_attributes_inside(body):
    """mirrord's operator 3.132.0: a JSON body that was no envelope was filtered wrongly."""
    assert envelope_attributes(body) == {}


@given(
    st.text()
    | st.recursive(st.none() | st.integers() | st.text(), lambda s: st.dictionaries(st.text(), s)).map(json.dumps)
)
def test_any_body_can_be_searched_for_an_envelope(body):
    assert isinstance(envelope_attributes(body), dict)
