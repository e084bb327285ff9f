"""Replayed messages: the original properties and a mark."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from signalbox.exchange.messages.deliveries import DeliveredMessage, InvalidDelivery
from signalbox.exchange.messages.properties import InvalidPublication, MessageProperties, dead_letter_message
from signalbox.exchange.messages.replayed_messages import (
    OriginalMessage,
    has_room,
    original_of_dead_letter,
    replayed_copy,
    replayed_message,
    replayed_publication,
)
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.messages import Attribute, Message, MessageId
from signalbox.sarracenia.rights.names import ExchangeName

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ORIGINAL = OriginalMessage(
    origin="xlog.fifo a.b 7",
    exchange=ExchangeName("xlog.fifo"),
    properties=MessageProperties(RoutingKey("a.b"), "body", {"color": Attribute("String", "red")}),
    message_id=MessageId("m-1"),
    publisher="alice",
    published_at=NOON,
    sequence=7,
)


def test_a_replayed_publication_is_what_it_was_with_the_mark():
    message = replayed_publication(ORIGINAL, "again", order_by=None)

    assert (message.message_id, message.body, message.system_attributes) == ("xlog.fifo a.b 7", "body", {})
    assert {name: one.text for name, one in message.attributes.items()} == {
        "topic": "a.b",
        "color": "red",
        "replay": "again",
    }


def test_an_ordered_exchange_takes_a_message_of_a_replay_once():
    first, again, other = (replayed_publication(ORIGINAL, replay, order_by=OrderBy.TOPIC) for replay in ("a", "a", "b"))

    assert first.group_id == "a.b"
    assert first.deduplication_id == again.deduplication_id
    assert first.deduplication_id != other.deduplication_id


def test_an_exchange_that_keeps_more_in_order_than_a_topic_gets_the_group_that_it_expects():
    of_all = replayed_publication(ORIGINAL, "a", order_by=OrderBy.EXCHANGE)
    of_one = replayed_publication(ORIGINAL, "a", order_by=OrderBy.PUBLISHER, sender="AROA:job")

    assert (of_all.group_id, of_one.group_id) == ("exchange", "AROA:job")


def test_a_replayed_copy_keeps_the_original_properties():
    delivered = DeliveredMessage.parse(replayed_copy(ORIGINAL, "again", into="q_a", expires_at=NOON))

    assert delivered.headers == {"color": "red", "replay": "again"}
    assert (delivered.exchange, delivered.message_id, delivered.publisher) == ("xlog.fifo", "m-1", "alice")
    assert (delivered.published_at, delivered.sequence, delivered.expires_at) == (NOON, 7, NOON)


def test_a_copy_for_an_ordered_queue_is_not_taken_for_the_first_one_that_sqs_may_still_remember():
    copy = replayed_copy(ORIGINAL, "again", into="q_a.fifo", expires_at=None)

    assert copy.group_id == "a.b"
    assert copy.deduplication_id not in (None, "m-1")


def test_a_letter_that_consumers_left_is_the_copy_that_they_got():
    letter = replace(replayed_copy(ORIGINAL, "before", into="q_a", expires_at=NOON), message_id=MessageId("l-1"))

    found = original_of_dead_letter(letter, exchange=None)

    assert replace(found, origin=ORIGINAL.origin, properties=ORIGINAL.properties) == ORIGINAL
    assert found.origin == "l-1"


def test_a_dead_letter_of_an_exchange_is_the_publication_without_its_reason():
    published = Message(
        MessageId("m-2"), "body", {"topic": Attribute("String", "a"), "color": Attribute("String", "red")}, {}, {}
    )
    letter = replace(
        dead_letter_message(published, own_names=["topic"], reason="no", is_fifo=False),
        message_id=MessageId("dead"),
        system_attributes={"SentTimestamp": "1000"},
    )

    found = original_of_dead_letter(letter, exchange=ExchangeName("xs"))

    assert found.properties == MessageProperties(RoutingKey("a"), "body", {"color": Attribute("String", "red")})
    assert (found.exchange, found.publisher, found.sequence) == ("xs", "unknown", None)
    assert (found.origin, found.message_id) == ("dead", "m-2")
    assert found.published_at == datetime.fromtimestamp(1, UTC)


def test_a_dead_letter_of_an_exchange_is_believed_neither_its_exchange_nor_its_publisher():
    """Its sender, or an earlier version without the message's id, wrote these attributes."""
    copy = replayed_copy(ORIGINAL, "forged", into="q_a", expires_at=NOON)
    unmarked = {name: one for name, one in copy.attributes.items() if name != "message_id"}
    copy = replace(copy, attributes=unmarked, system_attributes={"SentTimestamp": "1000"})

    found = original_of_dead_letter(copy, exchange=ExchangeName("xs"))

    assert (found.exchange, found.publisher, found.sequence) == ("xs", "unknown", None)
    assert found.message_id == copy.message_id
    again = replayed_copy(found, "r", into="q_a", expires_at=None)
    assert (again.attributes["exchange"].text, again.attributes["publisher"].text) == ("xs", "unknown")


def test_a_dead_letter_of_an_unknown_exchange_has_no_publisher():
    attributes = {"topic": Attribute("String", "a"), "publisher": Attribute("String", "alice")}
    letter = Message(MessageId("m"), "body", attributes, {"SentTimestamp": "1000"}, {})

    found = original_of_dead_letter(letter, exchange=None)

    assert (found.exchange, found.publisher) == ("unknown", "unknown")


@pytest.mark.parametrize(
    ("attributes", "error"),
    [({}, InvalidPublication), ({"exchange": Attribute("String", "xs")}, InvalidDelivery)],
)
def test_a_letter_that_is_no_message_of_an_exchange_is_refused(attributes, error):
    letter = Message(MessageId("m"), json.dumps({}), attributes, {"SentTimestamp": "1000"}, {})

    with pytest.raises(error):
        original_of_dead_letter(letter, exchange=None)


OF_NO_EXCHANGE = Message(
    MessageId("m-3"),
    "body",
    {"color": Attribute("String", "red")},
    {"MessageGroupId": "a", "MessageDeduplicationId": "once", "SentTimestamp": "1000", "AWSTraceHeader": "Root=1"},
    {},
)


def test_a_message_of_no_exchange_is_what_it_was_with_the_mark():
    message = replayed_message(OF_NO_EXCHANGE, "again", into="q_a")

    assert (message.message_id, message.body) == ("m-3", "body")
    assert {name: one.text for name, one in message.attributes.items()} == {"color": "red", "replay": "again"}
    assert message.system_attributes == {"AWSTraceHeader": "Root=1"}


def test_a_message_of_no_exchange_stays_in_its_group_and_is_taken_once_by_an_ordered_queue():
    first, again, other = (replayed_message(OF_NO_EXCHANGE, name, into="q_a.fifo") for name in ("a", "a", "b"))

    assert first.group_id == "a"
    assert first.deduplication_id == again.deduplication_id
    assert first.deduplication_id not in ("once", other.deduplication_id)


def test_messages_without_a_group_are_one_group_of_an_ordered_queue():
    found = replayed_message(replace(OF_NO_EXCHANGE, system_attributes={}), "again", into="q_a.fifo")

    assert found.group_id == "again"


def test_a_message_with_ten_attributes_has_no_room_for_the_mark_unless_it_has_one():
    nine = {f"a{number}": Attribute("String", "x") for number in range(9)}

    assert has_room(replace(OF_NO_EXCHANGE, attributes=nine))
    assert not has_room(replace(OF_NO_EXCHANGE, attributes=nine | OF_NO_EXCHANGE.attributes))
    assert has_room(replace(OF_NO_EXCHANGE, attributes=nine | {"replay": Attribute("String", "before")}))
