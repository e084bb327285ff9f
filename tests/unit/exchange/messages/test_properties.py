"""Message properties arrive as published, in a form that SQS allows."""

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.messages.deliveries import DeliveredMessage, InvalidDelivery
from signalbox.exchange.messages.headers import OWN_NAMES
from signalbox.exchange.messages.properties import InvalidPublication, MessageProperties, dead_letter_message, group_of
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.messages import MAXIMUM_BYTES, Attribute, Message, MessageId, outgoing, size_bytes
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.exchange.routing.naive_sqs import START as SENT_AT
from tests.unit.exchange.routing.naive_sqs import as_received

EXCHANGE = ExchangeName("xs_alice")
ANY_TEXT = st.text(st.characters())  # including halves of surrogate pairs
KEYS = st.text(max_size=60).filter(lambda key: not key.startswith("\0")).map(RoutingKey)
BODIES = st.text("ab é\n😀", min_size=1)
OWN = ["topic", "exchange", "message_id", "headers", "publisher", "sequence", "Topic", "Reason", "retry"]
NAMES = st.one_of(ANY_TEXT, st.sampled_from([*OWN, "a.b", "a..b", ".a", "aws.a", "AMAZON.a", "sum", "x" * 257]))
HEADERS = st.dictionaries(NAMES, st.one_of(ANY_TEXT, st.just("text")), max_size=14)
TYPED = st.sampled_from(
    [
        Attribute("String", "text"),
        Attribute("String.json", "{}"),
        Attribute("Number", "7.50"),
        Attribute("Number.float", "-1e-9"),
        Attribute("Binary", None, "AP8="),
        Attribute("Binary.image", None, "AP8="),
    ]
)


def delivered(properties: MessageProperties, published: Message, **changes) -> Message:
    fields = {"exchange": EXCHANGE, "publisher": "alice", "sequence": None, "expires_at": None, "is_fifo": False}
    return properties.delivered(published, **(fields | changes))


def raw(**attributes: Attribute) -> Message:
    """Return a message as a program publishes it that uses SQS alone."""
    return as_received(Message(MessageId(""), "body", attributes, {}, {}))


@given(KEYS, BODIES, HEADERS, st.booleans())
def test_a_message_is_delivered_as_it_was_published(key, body, headers, is_ordered) -> None:
    properties = MessageProperties.of_publication(key, body, headers)
    message = as_received(properties.published(deduplication_id="d" if is_ordered else None))

    received = MessageProperties.from_published(message)
    copy = delivered(
        received,
        message,
        sequence=7 if is_ordered else None,
        expires_at=SENT_AT + timedelta(seconds=30),
        is_fifo=is_ordered,
    )
    found = DeliveredMessage.parse(as_received(copy, message_id="another"))

    assert received == properties
    assert (found.key, found.body, found.headers) == (key, body, headers)
    assert (found.exchange, found.publisher, found.message_id) == (EXCHANGE, "alice", "id-1")
    assert (found.published_at, found.expires_at) == (SENT_AT, SENT_AT + timedelta(seconds=30))
    assert found.sequence == (7 if is_ordered else None)


@given(KEYS, HEADERS)
def test_the_named_publisher_of_a_trusted_sender_is_no_header(key, headers) -> None:
    properties = MessageProperties.of_publication(key, "body", headers)
    message = as_received(properties.published(publisher="alice"))

    assert message.attributes["publisher"].text == "alice"
    assert MessageProperties.from_published(message, own_names=("topic", "publisher")) == properties


@given(st.dictionaries(st.sampled_from("abcdefghij"), TYPED, max_size=9))
def test_headers_of_every_type_arrive_as_they_were(headers) -> None:
    message = raw(topic=Attribute("String", "a.b"), **headers)

    copy = delivered(MessageProperties.from_published(message), message)

    assert DeliveredMessage.parse(as_received(copy)).attributes == headers


@given(KEYS, HEADERS, ANY_TEXT, st.booleans())
def test_a_dead_letter_says_all_that_the_message_did_and_why_it_died(key, headers, reason, is_fifo) -> None:
    properties = MessageProperties.of_publication(key, "body", headers)
    message = as_received(properties.published())
    copy = delivered(properties, message, sequence=1, expires_at=SENT_AT, is_fifo=is_fifo)

    dead = dead_letter_message(copy, own_names=OWN_NAMES, reason="no: " + reason, is_fifo=is_fifo)

    found = DeliveredMessage.parse(as_received(dead))
    assert (found.key, found.headers, found.sequence) == (key, headers, 1)
    assert dead.attributes["Reason"].text.startswith("no: ")
    assert dead.group_id == (group_of(key) if is_fifo else None)


@pytest.mark.parametrize("name", ["h", "topic", "message_id"])
@pytest.mark.parametrize("character", ["A", '"', "é"])
def test_a_dead_letter_leaves_out_attributes_that_are_too_large(name: str, character: str) -> None:
    def published(length: int) -> Message:
        return raw(**{"topic": Attribute("String", "a.b"), name: Attribute("String", character * length)})

    free = MAXIMUM_BYTES - size_bytes(published(1))
    large = published(1 + free // len(character.encode()))

    dead = dead_letter_message(large, own_names=("topic", "message_id"), reason="too large", is_fifo=True)

    assert size_bytes(dead) <= MAXIMUM_BYTES
    assert (dead.attributes["Reason"].text, dead.body) == ("too large", large.body)


def test_headers_that_fit_are_attributes_of_their_own() -> None:
    properties = MessageProperties.of_publication("a", "body", {f"h{n}": "text" for n in range(9)})

    assert set(properties.published().attributes) == {"topic", *(f"h{n}" for n in range(9))}


def test_ten_headers_exceed_the_attribute_limit_and_share_one_attribute() -> None:
    headers = {f"h{n}": "text" for n in range(10)}
    properties = MessageProperties.of_publication("a", "body", headers)

    attributes = properties.published().attributes

    assert set(attributes) == {"topic", "headers"}
    assert json.loads(attributes["headers"].text) == headers


INVALID_VALUES = [
    {"DataType": "Binary", "BinaryValue": "!"},
    {"DataType": "Binary", "BinaryValue": "a"},
    {"DataType": "Binary", "BinaryValue": "é"},
    {"DataType": "Binary", "BinaryValue": ""},
    {"DataType": "Binary", "StringValue": "text"},
    {"DataType": "Binary", "StringValue": "text", "BinaryValue": "AA=="},
    {"DataType": "Number", "StringValue": "text"},
    {"DataType": "Number", "StringValue": "9" * 39},
    {"DataType": "Number", "StringValue": "1e999"},
    {"DataType": "Number", "BinaryValue": "AA=="},
    {"DataType": "String"},
    {"DataType": "String", "StringValue": "text", "BinaryValue": "AA=="},
    {"DataType": "String.", "StringValue": "text"},
    {"DataType": "String.é", "StringValue": "text"},
    {"DataType": "String." + "x" * 250, "StringValue": "text"},
    {"DataType": "Text", "StringValue": "text"},
]


@pytest.mark.parametrize("value", INVALID_VALUES, ids=str)
def test_a_header_that_sqs_would_refuse_is_no_attribute_of_a_copy(value) -> None:
    """A publisher writes `headers` as it likes: one copy must not fail the call that sends it with others."""
    headers = Attribute("String", json.dumps({"bad": value, "good": "text"}))
    message = raw(topic=Attribute("String", "a"), headers=headers)
    properties = MessageProperties.from_published(message)

    copy = delivered(properties, message)
    dead = dead_letter_message(message, own_names={"topic"}, reason="no", is_fifo=False)

    assert set(copy.attributes) == {"topic", "exchange", "message_id", "publisher", "published_at", "headers"}
    assert set(dead.attributes) == {"topic", "message_id", "Reason", "headers"}
    assert DeliveredMessage.parse(as_received(copy)).attributes["good"].text == "text"


def test_the_empty_routing_key_is_said_by_the_type_of_the_attribute() -> None:
    assert outgoing(MessageProperties.of_publication("", "body").published()) == {
        "MessageBody": "body",
        "MessageAttributes": {"topic": {"DataType": "String.empty", "StringValue": "-"}},
    }


def test_a_dash_is_a_routing_key_of_its_own() -> None:
    assert MessageProperties.from_published(raw(topic=Attribute("String", "-"))).key == "-"


def test_a_message_for_an_ordered_exchange_has_the_group_of_its_key() -> None:
    message = MessageProperties.of_publication("a.b", "body").published(deduplication_id="once")

    assert (message.group_id, message.deduplication_id) == ("a.b", "once")


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 129, "sha256-" + "0" * 64])
def test_a_key_that_is_no_group_or_looks_like_another_s_has_a_hash_for_one(key) -> None:
    assert re.fullmatch("sha256-[0-9a-f]{64}", group_of(RoutingKey(key)))
    assert group_of(RoutingKey(key)) != key


@given(KEYS, KEYS)
def test_no_two_keys_have_the_same_group(one, other) -> None:
    assert (group_of(one) == group_of(other)) == (one == other)


def test_a_copy_for_a_fifo_queue_is_known_there_by_the_message_s_id() -> None:
    properties = MessageProperties.of_publication("a.b", "body")

    copy = delivered(properties, as_received(properties.published()), is_fifo=True)

    assert (copy.group_id, copy.deduplication_id) == ("a.b", "id-1")


def test_a_trace_goes_on_in_every_copy() -> None:
    properties = MessageProperties.of_publication("a.b", "body")
    published = as_received(properties.published())
    traced = replace(published, system_attributes={**published.system_attributes, "AWSTraceHeader": "Root=1"})

    assert delivered(properties, traced).system_attributes["AWSTraceHeader"] == "Root=1"


def test_all_problems_of_a_publication_are_reported_at_once() -> None:
    with pytest.raises(InvalidPublication) as caught:
        MessageProperties.of_publication("x" * 256, "")

    assert "256 bytes of UTF-8; at most 255" in str(caught.value)
    assert "body: is empty" in str(caught.value)


def test_a_body_that_sqs_would_refuse_is_refused() -> None:
    with pytest.raises(InvalidPublication, match="body: has characters that SQS does not allow"):
        MessageProperties.of_publication("a", "a\x00b")


@pytest.mark.parametrize(
    ("body", "headers"), [("x" * 1_044_481, {}), ("é" * 522_241, {}), ("x", {"header": '"' * 300_000})]
)
def test_a_message_that_would_leave_no_room_is_refused_with_the_limit(body, headers) -> None:
    limit = r"SQS allows 1048576 \(1 MiB\), of which 4096 are reserved for the exchange's attributes"
    with pytest.raises(InvalidPublication, match=rf"body: has \d+ bytes with its headers; {limit}"):
        MessageProperties.of_publication("a", body, headers)


def test_the_longest_body_leaves_room_for_the_longest_names() -> None:
    key = "\x07" * 255
    properties = MessageProperties.of_publication(key, "x" * 1_044_480)
    published = as_received(properties.published())

    copy = delivered(properties, published, publisher="A" * 200, sequence=10**13, expires_at=SENT_AT, is_fifo=True)

    assert DeliveredMessage.parse(as_received(copy)).key == key
    assert (
        as_received(dead_letter_message(copy, own_names=OWN_NAMES, reason="é" * 1000, is_fifo=True)).body
        == properties.body
    )


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({}, "topic: expected an attribute of type String that holds the routing key"),
        ({"topic": Attribute("Number", "1")}, "topic: expected an attribute of type String"),
        ({"topic": Attribute("Binary", None, "AA==")}, "topic: expected an attribute of type String"),
        ({"topic": Attribute("String", "x" * 256)}, "topic: routing key"),
        ({"topic": Attribute("String.json", "{")}, "topic: is not JSON"),
        ({"topic": Attribute("String.json", r'"\u0000a.b"')}, "begins with U+0000, which marks binary values in WAMP"),
        ({"headers": Attribute("String", "{")}, "headers: is not JSON"),
        ({"headers": Attribute("String", "[" * 100_000)}, "headers: is not JSON"),
        ({"headers": Attribute("String", "[]")}, "headers: expected an object"),
        ({"headers": Attribute("Binary", None, "AA==")}, "headers: is not JSON"),
        ({"headers": Attribute("String", '{"a": 1}')}, "headers.a: expected an object"),
        (
            {"headers": Attribute("String", '{"a": "1"}'), "a": Attribute("String", "2")},
            "headers: 'a' is an attribute as well",
        ),
    ],
)
def test_a_message_that_no_exchange_takes_is_refused_with_the_reason(attributes, problem) -> None:
    with pytest.raises(InvalidPublication, match=re.escape(problem)):
        MessageProperties.from_published(
            raw(**({"topic": Attribute("String", "a")} if "headers" in attributes else {}), **attributes),
        )


def test_a_group_that_is_not_that_of_the_key_is_refused() -> None:
    message = MessageProperties.of_publication("a.b", "body").published(deduplication_id="d")
    wrong = replace(message, attributes={"topic": Attribute("String", "a.c")})

    with pytest.raises(InvalidPublication, match=r"MessageGroupId: expected 'a\.c'.*, not 'a\.b'"):
        MessageProperties.from_published(as_received(wrong)).check_group(as_received(wrong), OrderBy.TOPIC)


def test_a_message_that_no_exchange_sent_is_an_invalid_delivery() -> None:
    with pytest.raises(InvalidDelivery, match=r"^no exchange sent it: the attribute `exchange` is missing$"):
        DeliveredMessage.parse(raw(topic=Attribute("String", "a")))


def test_an_invalid_delivery_names_all_missing_properties() -> None:
    with pytest.raises(InvalidDelivery) as caught:
        DeliveredMessage.parse(raw(exchange=Attribute("String", "xs"), sequence=Attribute("String", "first")))

    text = str(caught.value)
    missing = ("topic", "message_id", "publisher", "published_at")
    assert all(f"{name}: " in text for name in missing)
    assert "sequence: expected a whole number, not 'first'" in text


def test_a_message_expires_at_its_moment_and_without_one_never() -> None:
    properties = MessageProperties.of_publication("a", "body")
    published = as_received(properties.published())
    mortal = DeliveredMessage.parse(as_received(delivered(properties, published, expires_at=SENT_AT)))
    immortal = DeliveredMessage.parse(as_received(delivered(properties, published)))

    moments = (SENT_AT.timestamp() - 0.001, SENT_AT.timestamp())
    assert [mortal.has_expired(moment) for moment in moments] == [False, True]
    assert not immortal.has_expired(SENT_AT.timestamp())


def test_own_attributes_of_a_sender_are_headers_of_its_dead_letter() -> None:
    forged = {name: Attribute("String", "forged") for name in OWN if name not in {"topic", "headers", "Topic"}}
    message = replace(raw(topic=Attribute("String", "a")), attributes={"topic": Attribute("String", "a"), **forged})

    dead = dead_letter_message(message, own_names=["topic"], reason="no", is_fifo=False)

    assert set(dead.attributes) == {"topic", "message_id", "Reason", "headers"}
    assert (dead.attributes["message_id"].text, dead.attributes["Reason"].text) == (message.message_id, "no")
    assert json.loads(dead.attributes["headers"].text) == dict.fromkeys(forged, "forged")


def test_of_a_dead_letter_that_is_too_long_the_beginning_is_kept() -> None:
    message = Message(MessageId("id"), "x" * MAXIMUM_BYTES, {}, {}, {})

    dead = dead_letter_message(message, own_names=["topic"], reason="too long", is_fifo=True)

    assert dead.body == "x" * 100_000
    assert (dead.group_id, dead.deduplication_id) == ("id", "id")


def test_headers_that_cannot_be_read_lie_among_the_dead_as_they_were() -> None:
    attributes = {"headers": Attribute("String", "{"), **{f"h{n}": Attribute("Number", "1") for n in range(9)}}

    dead = dead_letter_message(raw(**attributes), own_names=["topic"], reason="no JSON", is_fifo=False)

    assert set(dead.attributes) == {"headers", "message_id", "Reason"}
    kept = json.loads(dead.attributes["headers"].text)
    assert kept["headers"] == "{"
    assert kept["h0"] == {"DataType": "Number", "StringValue": "1"}
