"""The messages that forwarding and return send."""

import pytest

from signalbox.messages import Message, outgoing, size_bytes
from signalbox.sending import MAXIMUM_ENTRIES
from signalbox.splitting.forwarding.deliveries import deliveries, return_request
from signalbox.splitting.model.claims import Decision

FULL = {
    "MessageId": "m",
    "Body": "b",
    "Attributes": {
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        "AWSTraceHeader": "Root=1",
        "SentTimestamp": "1",
        "SenderId": "AROA",
    },
    "MessageAttributes": {
        **{f"a{number}": {"DataType": "String", "StringValue": "x"} for number in range(9)},
        "picture": {"DataType": "Binary", "BinaryValue": "iVBORw=="},
    },
}


def test_a_message_is_forwarded_as_it_was_sent():
    """A message with ten attributes has no room for one more, so none is added."""
    assert outgoing(Message.parse(FULL)) == {
        "MessageBody": "b",
        "MessageAttributes": FULL["MessageAttributes"],
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}},
    }
    assert outgoing(Message.parse({"Body": "b"})) == {"MessageBody": "b"}


def test_no_two_messages_are_forwarded_with_one_deduplication_id():
    """The original queue accepts an id again after five minutes; both messages may be forwarded within a second."""

    def forwarded_ids(message_id):
        sent = deliveries(
            Message.parse(FULL | {"MessageId": message_id}),
            Decision(None, ("ann",), ()),
            deployed="deployed.fifo",
            sessions={"ann": "ann.fifo"},
        )
        return [one.message.deduplication_id for one in sent]

    first, again, second = (forwarded_ids(message_id) for message_id in ("m-1", "m-1", "m-2"))

    assert first == again
    assert len({*first, *second}) == 2


def test_a_returned_message_has_a_new_deduplication_id_that_retries_repeat():
    message_ = Message.parse(FULL)
    request = return_request(message_)

    assert request["MessageDeduplicationId"] != "d"
    assert len(request["MessageDeduplicationId"]) == 64  # SQS allows 128
    assert request == return_request(message_)
    assert {**request, "MessageDeduplicationId": "d"} == outgoing(message_)
    assert "DelaySeconds" not in request  # a FIFO queue refuses it


def test_a_message_returned_to_a_standard_queue_is_not_delayed_again():
    for fields in ({"Body": "b"}, {"Body": "b", "Attributes": {"MessageGroupId": "fair"}}):
        assert return_request(Message.parse(fields))["DelaySeconds"] == 0


@pytest.mark.parametrize(
    ("value", "size"),
    [({"Body": "é"}, 2), (FULL, 1 + 9 * (2 + 6 + 1) + 7 + 6 + 6), ({"Body": "\ud800"}, 3)],
)
def test_attributes_count_towards_the_size_of_a_message(value, size):
    assert size_bytes(Message.parse(value)) == size
    assert MAXIMUM_ENTRIES == 10
