"""The mark of replayed messages."""

from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.splitting.forwarding.deliveries import MARK, is_replayed, marked
from tests.fakes.clock import START

QUEUE, OTHER = QueueName("mirrord-ann"), QueueName("mirrord-bob")


def message(attributes: int = 0, **system: str) -> Message:
    values = {f"a{number}": {"DataType": "String", "StringValue": "x"} for number in range(attributes)}
    return Message.parse({"MessageId": "m-1", "Body": "1", "MessageAttributes": values, "Attributes": system})


def test_a_replayed_message_has_its_time_and_queue_in_one_more_attribute():
    found = marked(message(9), QUEUE, at=START)

    assert found is not None
    assert found.attributes[MARK].text == "2026-11-21T12:00:00.000+00:00 mirrord-ann"
    assert len(found.attributes) == 10
    assert is_replayed(found, QUEUE)


def test_a_message_with_ten_attributes_has_no_room_for_the_mark():
    assert marked(message(10), QUEUE, at=START) is None


def test_a_mark_of_another_queue_does_not_count():
    found = marked(message(), QUEUE, at=START)

    assert found is not None
    assert not is_replayed(found, OTHER)  # a consumer may have sent it on with its attributes
    assert not is_replayed(message(), QUEUE)


def test_a_mark_is_replaced_when_a_message_is_replayed_again():
    once = marked(message(9), QUEUE, at=START)
    assert once is not None

    again = marked(once, OTHER, at=START)

    assert again is not None
    assert (is_replayed(again, OTHER), is_replayed(again, QUEUE)) == (True, False)


def test_messages_that_were_sent_with_one_deduplication_id_keep_different_ones():
    system = {"MessageGroupId": "g", "MessageDeduplicationId": "d"}
    first = message(**system)
    second = Message.parse({**first.document, "MessageId": "m-2"})

    ids = [one and one.deduplication_id for one in (marked(found, QUEUE, at=START) for found in (first, second, first))]

    assert ids[0] == ids[2] != ids[1]
    assert "d" not in ids
