"""Stored and sent documents of sessions round-trip."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.messages.properties import InvalidPublication
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.arvados.requests import BadRequest
from signalbox.live.model.effects import (
    AnswerCall,
    Attach,
    Close,
    CountFailure,
    Detach,
    Distribute,
    Drop,
    Effect,
    Enter,
    Leave,
    Post,
)
from signalbox.live.model.state import ConnectionId, Elapsed, FrameId, Killed, Lost, RightsChanged, State, opened
from signalbox.live.router.publication_metadata import (
    AcknowledgementTarget,
    InvalidMetadata,
    PublicationMetadata,
    RealmPublication,
    message_for,
    metadata_text,
    parse_metadata,
)
from signalbox.live.session.inbox import InboxMessage, InvalidInboxMessage, frame_body, parse, readings, signal_body
from signalbox.live.session.records import session_document, session_of
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.authentication import AuthMethod, Identity
from signalbox.live.wamp.batches import MAXIMUM_MESSAGES, for_inbox
from signalbox.live.wamp.codec import MalformedFrame
from signalbox.live.wamp.messages import Goodbye, Payload, PublicationId, RequestId, SessionId, Unsubscribed
from signalbox.live.wamp.options import AfterPublication, AfterSequence, AfterTime, LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.live import START

A, PREFIX = TopicPattern.parse("trial.a"), TopicPattern.parse("trial.", MatchPolicy.PREFIX)
ALICE = Listener(SessionId(2**53), "alice", "source")
AUDIENCE = Audience(
    eligible=frozenset({SessionId(7), SessionId(2**53)}),
    exclude_authid=frozenset({"bob"}),
    eligible_authrole=frozenset(),
    excluded_publisher=SessionId(9),
)
EFFECTS: list[Effect] = [
    Post(Unsubscribed(RequestId(3), {"reason": "x"}), ends=A.subscription_id),
    Close(),
    Enter(ALICE),
    Leave(ALICE, frozenset({A, PREFIX})),
    Attach(PREFIX, get_retained=True, history=None),
    *(
        Attach(A, get_retained=False, history=past)
        for past in (LastEvents(3), AfterSequence(0), AfterTime(START), AfterPublication(PublicationId(8)))
    ),
    Detach(A),
    Distribute(
        publication=PublicationId(5),
        topic=RoutingKey("trial.a"),
        payload=Payload((1, None), {"k": "\ud800"}),
        audience=AUDIENCE,
        disclosed=ALICE,
        is_retained=True,
        request=None,
    ),
    Distribute(
        publication=PublicationId(5),
        topic=RoutingKey("a"),
        payload=Payload(),
        audience=UNRESTRICTED,
        disclosed=None,
        is_retained=False,
        request=RequestId(4),
    ),
    AnswerCall(RequestId(1), "wamp.session.count", Payload((["admin"],))),
    Drop("wamp.error.invalid_uri"),
    CountFailure("somebody"),
]


def test_the_document_of_an_unjoined_session_round_trips() -> None:
    session = opened(ConnectionId("c="), now=START, user_agent="x/1")

    assert session_of(json.loads(json.dumps(session_document(session)))) == session


def test_the_document_of_a_session_with_pending_effects_round_trips() -> None:
    session = replace(
        opened(ConnectionId("c="), now=START),
        state=State.JOINED,
        realm=ExchangeName("xs_trial.fifo"),
        session=ALICE.session,
        identity=Identity("alice", "source", AuthMethod.WAMPCRA),
        challenge="{}",
        features=frozenset({"subscription_revocation"}),
        subscriptions={one.subscription_id: one for one in (A, PREFIX)},
        frames=(FrameId("f1"), FrameId("f2")),
        pending={FrameId("f1"): tuple(EFFECTS), FrameId("f2"): ()},
    )

    assert session_of(json.loads(json.dumps(session_document(session)))) == session


@pytest.mark.parametrize("signal", [Lost(), Elapsed(), RightsChanged(), Killed("wamp.close.killed", "enough")], ids=str)
def test_a_signal_round_trips(signal) -> None:
    assert parse(signal_body(signal)) == InboxMessage(signal)


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


@pytest.mark.parametrize(
    "note",
    [
        PublicationMetadata(PublicationId(1)),
        PublicationMetadata(
            PublicationId(1),
            AUDIENCE,
            ALICE,
            is_retained=True,
            acknowledge_to=AcknowledgementTarget(ConnectionId("c"), RequestId(0)),
        ),
    ],
)
def test_publication_metadata_round_trips(note: PublicationMetadata) -> None:
    assert parse_metadata(metadata_text(note)) == note


def test_a_realm_publication_has_its_publisher_and_message_group() -> None:
    said = RealmPublication(
        RoutingKey("trial.a"),
        Payload((1,), {"k": 2}),
        PublicationMetadata(PublicationId(1)),
        "alice",
        ConnectionId("c1"),
    )

    message = message_for(said, order_by=OrderBy.TOPIC, deduplication_id="d")

    assert (json.loads(message.body), message.group_id, message.deduplication_id) == (
        {"args": [1], "kwargs": {"k": 2}},
        "trial.a",
        "d",
    )
    assert {name: one.text for name, one in message.attributes.items()} == {
        "topic": "trial.a",
        "publisher": "alice",
        "payload": "wamp",
        "live": metadata_text(said.metadata),
    }


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
