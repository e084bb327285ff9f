"""Messages of SQS as kombu's: what another program wrote is a text, and no message stops a consumer."""

import json
import math
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kombu import Connection
from kombu.exceptions import ContentDisallowed, SerializationError
from kombu.utils.json import dumps

from signalbox.kombu.consumers import with_tag
from signalbox.kombu.messages import Received
from signalbox.kombu.names import Namespace
from signalbox.sarracenia.rights.names import UserName

SENT_AT = 1_000_000
NAMES = Namespace(UserName("alice"), "dev-")
CHANNEL = Connection("memory://").default_channel


def received(body: str, *, times: int = 1, **copied: str) -> Received:
    """Return a message that was sent to its queue, or, with attributes, was copied by the stage."""
    attributes = {"topic": "a.b", "exchange": "xs_alice_tasks", "message_id": "id", "publisher": "bob"}
    attributes |= {"published_at": str(SENT_AT), **copied}
    return Received.parse(
        {
            "Body": body,
            "ReceiptHandle": "receipt",
            "Attributes": {"SentTimestamp": str(SENT_AT), "ApproximateReceiveCount": str(times)},
            "MessageAttributes": {
                name: {"StringValue": text, "DataType": "String"} for name, text in attributes.items() if copied
            },
        },
        NAMES,
    )


def body(exchange: object = "tasks", key: object = "a.b", **properties: object) -> str:
    info = {"exchange": exchange, "routing_key": key}
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
    ("claimed", "came_by", "shown"),
    [
        (("tasks", "a.*"), ("xs_alice_tasks", "a.%2A"), ("tasks", "a.*")),
        (("", "celery"), ("xs_alice_default", "celery"), ("", "celery")),
        (("xs_alice_orders", "a"), ("xpublic", "a"), ("xpublic", "a")),
        (("orders", "a"), ("xs_bob_orders", "a"), ("xs_bob_orders", "a")),
        (("tasks", "paid"), ("xs_alice_tasks", "new"), ("xs_alice_tasks", "new")),
        (("tasks.fifo", "a"), ("xs_alice_tasks", "a"), ("xs_alice_tasks", "a")),
    ],
)
def test_a_copy_came_by_the_exchange_and_key_of_the_stage_whatever_its_publisher_wrote(claimed, came_by, shown):
    exchange, topic = came_by

    info = received(body(*claimed), exchange=exchange, topic=topic).payload["properties"]["delivery_info"]

    assert (info["exchange"], info["routing_key"]) == shown


@pytest.mark.parametrize(("claimed", "shown"), [("bob", {"user_id": "bob"}), ("alice", {}), (None, {})])
def test_a_copy_names_no_other_user_than_its_publisher(claimed, shown):
    properties = received(body(user_id=claimed), topic="a.b").payload["properties"]

    assert {name: one for name, one in properties.items() if name == "user_id"} == shown


@pytest.mark.parametrize("text", ["storm", "7", "[" * 100_000, "null", '{"a": 1}'])
def test_a_message_of_another_program_is_a_text(text: str):
    found = received(text, topic="v03.radar", exchange="xpublic")

    assert (found.payload["body"], found.payload["content-type"]) == (text, "text/plain")
    expected = {"exchange": "xpublic", "routing_key": "v03.radar", "redelivered": False}
    assert found.payload["properties"]["delivery_info"] == expected


@pytest.mark.parametrize("number", ["1E+999999999", "0E-999999999", "9" * 300])
@pytest.mark.parametrize("place", ["priority", "expiration", "x-anything"])
def test_a_message_with_a_decimal_that_amqp_has_not_is_a_text(place: str, number: str):
    text = body(**{place: {"__type__": "decimal", "__value__": number}})

    assert received(text).payload["body"] == text
    assert received(body(**{place: {"__type__": "decimal", "__value__": "1.5"}})).payload["body"] != text


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda some: st.lists(some, max_size=2) | st.dictionaries(st.text(max_size=5), some, max_size=2),
    max_leaves=4,
)
# kombu's JSON makes other objects of these, if it can.
TYPED = st.fixed_dictionaries(
    {"__type__": st.sampled_from(["datetime", "date", "uuid", "decimal", "bytes", "base64"]), "__value__": ANYTHING}
)
HOSTILE = ANYTHING | TYPED


def part(name: str, *usual: object) -> st.SearchStrategy[dict[str, object]]:
    return st.just({}) | st.fixed_dictionaries({name: st.sampled_from(usual) | HOSTILE})


def joined(*parts: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[dict[str, object]]:
    return st.tuples(*parts).map(lambda found: {name: value for one in found for name, value in one.items()})


INFO = joined(part("exchange", "", "tasks", "a.fifo"), part("routing_key", "a"))
PROPERTIES = joined(
    part("body_encoding", "base64", "utf-8", "rot13"),
    part("priority", 3, math.inf),
    part("expiration", "5", "nan"),
    part("reply_to", "r"),
    (INFO | HOSTILE).map(lambda found: {"delivery_info": found}),
)
MESSAGES = joined(
    part("body", "e30=", "{}"),
    part("headers", {"compression": "zlib"}),
    part("content-type", "application/json"),
    part("content-encoding", "utf-8", "binary", "none"),
    (PROPERTIES | HOSTILE).map(lambda found: {"properties": found}),
)
USUAL = {"body": "e30=", "properties": {"delivery_info": {"exchange": "", "routing_key": "a"}}}


@given(MESSAGES)
@example({**USUAL, "properties": {**USUAL["properties"], "body_encoding": "rot13"}})
@example({**USUAL, "properties": {**USUAL["properties"], "priority": math.inf}})
@example({**USUAL, "properties": {**USUAL["properties"], "x": {"__type__": "decimal", "__value__": "x"}}})
@example({**USUAL, "headers": []})
@example({**USUAL, "content-type": ["text/plain"]})
def test_whatever_a_publisher_writes_a_program_gets_a_message_that_it_can_read_or_refuse(document):
    found = received(json.dumps(document), topic="a", exchange="xpublic")

    message = CHANNEL.Message(with_tag(found.payload, 1), channel=CHANNEL)
    message.accept = {"application/json", "text/plain"}
    with suppress(ContentDisallowed, SerializationError):
        message.decode()
    assert isinstance(message.headers, dict)
    assert 0 <= found.priority <= 255
    assert not math.isnan(found.expires_at)
