"""Stored and sent documents of sessions round-trip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.messages.properties import InvalidPublication
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.arvados.requests import BadRequest
from signalbox.live.model.state import ConnectionId, Lost
from signalbox.live.router.publication_metadata import (
    InvalidMetadata,
    PublicationMetadata,
    RealmPublication,
    message_for,
    parse_metadata,
)
from signalbox.live.session.inbox import InboxMessage, InvalidInboxMessage, frame_body, parse, readings
from signalbox.live.wamp.batches import MAXIMUM_MESSAGES, for_inbox
from signalbox.live.wamp.codec import MalformedFrame
from signalbox.live.wamp.messages import Goodbye, Payload, PublicationId


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_no_frame_is_mistaken_for_a_signal(text: str) -> None:
    assert parse(frame_body(text)).size_bytes == len(for_inbox(text).encode())


def test_a_body_is_read_as_a_connection_of_each_kind_reads_it() -> None:
    goodbye, lost = Goodbye({}, "a.b"), Lost()

    assert [one.received for one in readings('f[6,{},"a.b"]')] == [goodbye, BadRequest(), goodbye]
    assert [one.received for one in readings('{"heard": "lost"}')][:2] == [lost, lost]
    assert len(readings("f" + "x\n\n" * 1_000)) == 2 + MAXIMUM_MESSAGES


def test_a_frame_is_a_message_or_malformed() -> None:
    assert parse('f[6,{},"a.b"]') == InboxMessage(Goodbye({}, "a.b"), size_bytes=12)
    assert isinstance(parse('f{"heard": "lost"}').received, MalformedFrame)


@pytest.mark.parametrize("body", ["", "x", "[]", "7", "{}", '{"heard": "else"}', '{"heard": ["lost"]}', "[" * 100_000])
def test_an_inbox_message_that_is_neither_frame_nor_signal_is_refused(body: str) -> None:
    with pytest.raises(InvalidInboxMessage):
        parse(body)


def test_a_payload_too_large_for_sqs_is_refused() -> None:
    said = RealmPublication(
        RoutingKey("trial.a"),
        Payload(("x" * 1_100_000,)),
        PublicationMetadata(PublicationId(1)),
        "alice",
        ConnectionId("c1"),
    )

    with pytest.raises(InvalidPublication):
        message_for(said, order_by=OrderBy.TOPIC, deduplication_id="d")


@pytest.mark.parametrize("text", ["yes", "[]", "{}", '{"publication": 1, "audience": 7}', "[" * 30_000])
def test_metadata_that_no_session_wrote_are_invalid(text: str) -> None:
    with pytest.raises(InvalidMetadata, match="expected the metadata of a session"):
        parse_metadata(text)
