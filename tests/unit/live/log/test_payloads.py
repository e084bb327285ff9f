"""Payloads as message bodies, and the decoding of a realm's messages into events."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.matching.graph import Routes
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.documents import event_document, event_of, json_text
from signalbox.live.log.events import MAXIMUM_EVENT_BYTES, LoggedEvent, event_for
from signalbox.live.log.payloads import body_of, payload_from_body, publication_id
from signalbox.live.model.state import ConnectionId
from signalbox.live.router.decoding import logged_event, publication_metadata
from signalbox.live.router.publication_metadata import AcknowledgementTarget, PublicationMetadata, metadata_text
from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.codec import MAXIMUM_ID, parse, serialize
from signalbox.live.wamp.messages import Payload, PublicationId, RequestId, SessionId
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.messages import Attribute, MessageId
from tests.unit.exchange.routing.naive_sqs import START, as_received, is_xml

# A string that begins with U+0000 is a binary value.
texts = st.text().filter(lambda text: not text.startswith("\0")) | st.binary().map(
    lambda binary: "\0" + base64.b64encode(binary).decode()
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
payloads = st.builds(
    Payload, st.lists(json_values, max_size=3).map(tuple), st.dictionaries(st.text(), json_values, max_size=2)
)
JOE = Listener(SessionId(7), "joe", "source")


def published(body: str, *, notes: str | None = None, **headers: str) -> Publication:
    envelope = MessageProperties.of_publication("trial.a", body, headers)
    message = as_received(envelope.published(), message_id="m-1")
    return Publication(message, envelope, Routes((), by_alternate=False), "joe", notes)


def event_from(publication: Publication) -> LoggedEvent:
    return logged_event(publication, publication_metadata(publication), sequence=3)


@given(payloads)
def test_a_payload_survives_the_conversion_to_an_sqs_message_and_back(payload) -> None:
    body, headers = body_of(payload)

    assert is_xml(body)
    assert payload_from_body(body, headers) == payload


@pytest.mark.parametrize(
    ("body", "headers", "arguments", "keywords"),
    [
        ("plain text", {}, ("plain text",), {}),
        (r'"\u0000not base64"', {}, (r'"\u0000not base64"',), {}),
        ('{"a": 1}', {}, ({"a": 1},), {}),
        ("17", {}, (17,), {}),
        ("{}", {"payload": "wamp"}, (), {}),
        ("NaN", {}, ("NaN",), {}),
        ('"text"', {}, ("text",), {}),
        ('{"args": [1, 2], "kwargs": {"a": 3}}', {"payload": "wamp"}, (1, 2), {"a": 3}),
        ('{"args": [1, 2]}', {}, ({"args": [1, 2]},), {}),
        ("[1, 2]", {"payload": "wamp"}, ([1, 2],), {}),
        ('{"args": 1}', {"payload": "wamp"}, ({"args": 1},), {}),
        ('{"kwargs": []}', {"payload": "wamp"}, ({"kwargs": []},), {}),
        ('{"args": [], "more": 1}', {"payload": "wamp"}, ({"args": [], "more": 1},), {}),
    ],
)
def test_any_sqs_body_is_a_payload(body, headers, arguments, keywords) -> None:
    assert payload_from_body(body, headers) == Payload(arguments, keywords)


@pytest.mark.parametrize("headers", [{}, {"payload": "wamp"}])
@pytest.mark.parametrize("depth", range(90, 104))
def test_an_event_of_any_body_can_be_read_by_clients(depth, headers) -> None:
    value = "[" * depth + "]" * depth
    for body in (value, f'{{"args": {value}}}'):
        event = LoggedEvent(PublicationId(1), RoutingKey("a"), START, payload_from_body(body, headers))

        parse(serialize(event_for(TopicPattern.parse("a"), event)))


def test_a_single_argument_is_the_body_itself() -> None:
    assert body_of(Payload(({"line": 1},))) == ('{"line":1}', {})


def test_a_redelivered_message_has_the_same_publication_id() -> None:
    first, again, other = (publication_id(MessageId(one)) for one in ("m-1", "m-1", "m-2"))

    assert first == again != other
    assert 1 <= first <= MAXIMUM_ID


def test_an_event_has_its_sending_time_and_the_publishers_headers_except_the_routers_own() -> None:
    event = event_from(published('{"args": [1]}', payload="wamp", retain="true", color="red"))

    assert (event.payload, event.is_retained, event.headers) == (Payload((1,)), True, {"color": "red"})
    assert (event.at, event.sequence, event.publication) == (START, 3, publication_id(MessageId("m-1")))
    assert event_for(TopicPattern.parse("trial.a"), event).details["_headers"] == {"color": "red"}


def test_a_binary_header_becomes_its_base64_text() -> None:
    publication = published("1")
    publication.properties.headers["picture"] = Attribute("Binary", None, "AA==")  # type: ignore[index]

    assert event_from(publication).headers == {"picture": "AA=="}


@pytest.mark.parametrize(("sent", "received"), [("\0\0 bad", " bad"), ("\0YQ==", "\0YQ==")])
def test_a_header_that_no_client_could_read_loses_its_mark_of_a_binary_value(sent, received) -> None:
    publication = published("1", color=sent)

    assert event_from(publication).headers == {"color": received}


def test_the_metadata_of_a_session_applies_to_its_event() -> None:
    audience = Audience(exclude_authid=frozenset({"eve"}), excluded_publisher=SessionId(7))
    note = PublicationMetadata(
        PublicationId(42),
        audience,
        JOE,
        is_retained=True,
        acknowledge_to=AcknowledgementTarget(ConnectionId("c"), RequestId(1)),
    )
    publication = published("1", notes=metadata_text(note))

    event = event_from(publication)

    assert publication_metadata(publication) == note
    assert (event.publication, event.audience, event.disclosed, event.is_retained) == (42, audience, JOE, True)


@pytest.mark.parametrize(
    ("body", "headers"), [("x" * (MAXIMUM_EVENT_BYTES + 1), {}), ("x", {"note": "x" * MAXIMUM_EVENT_BYTES})]
)
def test_a_payload_too_large_for_connections_is_omitted_and_its_size_kept(body: str, headers: dict[str, Any]) -> None:
    event = event_from(published(body, **headers))

    size = len(body) + sum(map(len, headers.values()))
    assert (event.payload, event.headers, event.omitted_bytes) == (Payload(), {}, size)
    assert event_for(TopicPattern.parse("trial.a"), event).details["_omitted_bytes"] == size


@given(payloads, st.booleans(), st.dictionaries(st.text(), st.text(), max_size=2))
def test_an_event_document_round_trips(payload, is_retained, headers) -> None:
    at = datetime(2026, 11, 21, 12, 0, 0, 123_000, UTC)
    audience = Audience(eligible=frozenset(), exclude_authrole=frozenset({"source"}))
    event = LoggedEvent(
        PublicationId(1), TopicPattern.parse("a.b").uri, at, payload, 5, audience, JOE, is_retained, headers
    )  # type: ignore[arg-type]

    assert event_of(event_document(event)) == event
    assert is_xml(json_text(event_document(event)))
