"""The functions that open sessions, receive frames and process inboxes."""

import json
import os
import secrets
import signal
import zlib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from lambdas.live import session, session_wiring, wiring
from lambdas.live.batches import redeliver
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.account_items import grants_item
from signalbox.aws.live.issuers import IssuerKeys
from signalbox.aws.live.json_documents import JsonDocuments
from signalbox.aws.live.tokens import JwtVerifier
from signalbox.errors import RejectedError
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.routing.limits import PERIOD_SECONDS
from signalbox.live.model.state import ConnectionId, SessionState, opened
from signalbox.live.procedures import realm_subscribers
from signalbox.live.rights.grants import Grant
from signalbox.live.router.write_limits import MAXIMUM_KILOBYTES
from signalbox.live.session.connection import MAXIMUM_OF_NETWORK, MAXIMUM_PER_SECOND
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.networks import network_number, stored_group
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Right
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.fakes.issuer import AUDIENCE, running_issuer
from tests.handlers.environment import Context, dead_letter_reason, written_events
from tests.handlers.live.live_stage import (  # noqa: F401 - fixtures
    INBOX,
    NAMES,
    ORDERED_DEAD,
    REALM,
    TIMERS,
    record_of,
    stage,
)
from tests.handlers.recorded_events import batch

A = TopicPattern.parse("trial.a")


def test_a_client_joins_subscribes_and_publishes(stage):  # noqa: F811
    session_id = stage.join()

    assert stage.say("c1", 32, 1, {}, "trial.a") == [[33, 1, A.subscription_id]]
    assert stage.say("c1", 16, 2, {"acknowledge": True}, "trial.a", ["hello"]) == []

    (message,) = stage.taken(NAMES.queue(REALM))
    attributes = {name: one["StringValue"] for name, one in message["MessageAttributes"].items()}
    note = json.loads(attributes["live"])
    assert (message["Body"], attributes["topic"], attributes["publisher"]) == ('"hello"', "trial.a", "source")
    assert note["reply"] == {"connection": "c1", "request": 2}
    assert note["audience"] == {"excluded_publisher": session_id}
    assert message["Attributes"]["MessageGroupId"] == "c1"
    assert stage.history() == [("session", "started"), ("subscription", "subscribed")]


def test_frames_for_which_an_invocation_has_no_time_are_processed_by_the_next_one(stage):  # noqa: F811
    stage.join()
    for number in (1, 2, 3):
        wiring.inbox().put_frame(ConnectionId("c1"), f'[32,{number},{{}},"trial.a"]', request=str(number))

    assert len(stage.process(context=Context(0))) == 2
    assert stage.process(wait=20) == []

    assert [reply[1] for reply in stage.replies("c1")] == [1, 2, 3]


def test_frames_that_are_left_wait_as_long_as_those_before_them_took(stage):  # noqa: F811
    wiring.inbox().put_frame(ConnectionId("c1"), "[]", request="1")
    records = [record_of(message, INBOX) for message in stage.taken(INBOX, keep=True)]

    redeliver(records, "LIVE_INBOX_URL", since=datetime.now(UTC) - timedelta(minutes=5))
    assert stage.taken(INBOX, keep=True) == []
    redeliver(records, "LIVE_INBOX_URL", since=datetime.now(UTC))
    assert len(stage.taken(INBOX, wait=20)) == 1


def test_a_session_of_a_user_whose_large_records_are_written_too_often_ends(stage):  # noqa: F811
    stage.join()
    stored = wiring.sessions().find(ConnectionId("c1"))
    wiring.sessions().save(replace(stored.session, user_agent=secrets.token_hex(20_480)), replacing=stored)
    period = int(datetime.now(UTC).timestamp()) // PERIOD_SECONDS
    for one in (period, period + 1):
        stage.live.put_item(Item={"pk": "written#records#source", "sk": str(one), "amount": MAXIMUM_KILOBYTES})
    wiring.inbox().put_frame(ConnectionId("c1"), '[32,1,{},"trial.a"]', request="1")

    assert stage.process() == []

    assert [reply[0] for reply in stage.replies("c1")] == [6]
    assert stage.taken(INBOX, keep=True) == []


def test_a_connection_that_does_not_offer_wamp_in_json_is_refused(stage):  # noqa: F811
    taken = stage.connect("c1")
    refused = stage.connect("c2", {"sec-websocket-protocol": "wamp.2.msgpack"})

    assert taken == {"statusCode": 200, "headers": {"Sec-WebSocket-Protocol": "wamp.2.json"}}
    assert refused["statusCode"] == 400
    assert "wamp.2.json" in refused["body"]
    assert wiring.sessions().find(ConnectionId("c1")).session.user_agent == "Test/1"
    assert wiring.sessions().find(ConnectionId("c2")) is None


def test_connections_above_the_rate_are_refused(stage):  # noqa: F811
    now = round(datetime.now(UTC).timestamp() * 1000)
    stage.live.put_item(Item={"pk": f"second#{now // 1000}", "sk": "connections", "count": MAXIMUM_PER_SECOND})

    assert stage.connect("c1", requestTimeEpoch=now)["statusCode"] == 429
    assert stage.connect("c1", requestTimeEpoch=now + 1000)["statusCode"] == 200


def test_a_stranger_leaves_new_connections_to_others(stage):  # noqa: F811
    """IPv6 gives a customer 2^64 addresses. In this second the two networks are in different groups of 64."""
    now = round(datetime(2026, 11, 27, tzinfo=UTC).timestamp() * 1000)

    def connect(number: int, address: str) -> int:
        return stage.connect(f"c{number}", requestTimeEpoch=now, identity={"sourceIp": address})["statusCode"]

    taken = [connect(number, f"2a00:1450:4001:81b::{number:x}") for number in range(MAXIMUM_PER_SECOND + 10)]

    assert taken == [200] * MAXIMUM_OF_NETWORK + [429] * (len(taken) - MAXIMUM_OF_NETWORK)
    assert [connect(number, "8.8.8.8") for number in range(1000, 1010)] == [200] * 10
    stored = wiring.sessions().find(ConnectionId("c1000"))
    assert stored is not None  # and its publications without a secret count for its network
    assert stored.session.network == stored_group(network_number("8.8.8.8"), date(2026, 11, 27))


def test_a_closed_connection_leaves_no_subscriptions_and_no_session(stage):  # noqa: F811
    stage.join()
    stage.say("c1", 32, 1, {}, "trial.a")

    assert stage.connect("c1", routeKey="$disconnect")["statusCode"] == 200
    stage.process()

    kept = {item["pk"].partition("#")[0] for item in stage.live.scan()["Items"] if item["sk"] != "version"}
    assert kept == {"connection", "grants", "pepper", "secret", "second"}
    assert stage.history()[-2:] == [("subscription", "unsubscribed"), ("session", "ended")]


def test_a_client_that_does_not_join_in_time_is_disconnected(stage):  # noqa: F811
    long_ago = datetime.now(UTC) - timedelta(seconds=11)
    stage.connect("c1", requestTimeEpoch=round(long_ago.timestamp() * 1000))
    stage.sqs.send_message(QueueUrl=stage.urls[TIMERS], MessageBody='{"connection": "c1"}')

    assert stage.process(TIMERS) == []
    assert stage.process() == []

    abort, close = stage.replies("c1")
    assert (abort[2], close) == ("wamp.error.timeout", "close")


def test_overdue_connections_are_swept(stage):  # noqa: F811
    opened_at = datetime.now(UTC) - timedelta(hours=2, minutes=7)
    wiring.sessions().open(opened(ConnectionId("old"), now=opened_at))
    stage.join("c1")

    assert session.handler({"task": "sweep"}, None) == {"lost": 1}
    assert stage.process() == []

    assert session.handler({"task": "sweep"}, None) == {"lost": 0}


def test_an_unknown_task_is_refused(stage):  # noqa: F811
    with pytest.raises(RejectedError, match="known: sweep"):
        session.handler({"task": "dream"}, None)


def test_a_failure_blocks_its_own_connection_only(stage):  # noqa: F811
    for connection in ("c1", "c2"):
        stage.connect(connection)
    stage.live.put_item(Item={"pk": "connection#c1", "sk": "session"})  # an unreadable record
    for connection in ("c1", "c1", "c2"):
        stage.send(connection, "f[6]")

    left = stage.process()

    assert len(left) == 2
    assert [one[2] for one in stage.replies("c2") if one != "close"] == ["wamp.error.protocol_violation"]


def test_an_unreadable_message_of_an_inbox_becomes_a_dead_letter_and_blocks_no_other(stage):  # noqa: F811
    stage.connect("c1")
    for body in ("nonsense", '{"heard": "music"}', "f[6]"):
        stage.send("c1", body)

    assert stage.process() == []

    assert [one[2] for one in stage.replies("c1") if one != "close"] == ["wamp.error.protocol_violation"]
    assert (
        wiring.sessions().find(ConnectionId("c1")).session.state is SessionState.CLOSED
    )  # the message behind was processed
    dead_letters = stage.taken(ORDERED_DEAD)
    assert [(letter["Body"], letter["Attributes"]["MessageGroupId"]) for letter in dead_letters] == [
        ("nonsense", "c1"),
        ('{"heard": "music"}', "c1"),
    ]
    assert list(map(dead_letter_reason, dead_letters)) == [
        "expected 'f' and a frame, or a JSON object",
        "heard: expected one of killed, refused, lost, elapsed, rights, admitted, not 'music'",
    ]
    assert stage.history().count(("dead_letter", "dead")) == 2


def test_a_frame_that_stops_its_reader_becomes_a_dead_letter_and_blocks_no_other(stage, monkeypatch):  # noqa: F811
    stage.connect("c1")
    for body in ("f[6]", "f[7]", '{"heard": "lost"}'):
        stage.send("c1", body)
    records = [record_of(message, INBOX) for message in stage.taken(INBOX, keep=True)]
    for record in records:
        record["attributes"]["ApproximateReceiveCount"] = "5"
    monkeypatch.setattr(session, "readings", lambda body: body == "f[7]" and os.kill(os.getpid(), signal.SIGSEGV))

    assert session.handler(batch(*records), None) == {"batchItemFailures": []}

    assert wiring.sessions().find(ConnectionId("c1")).session.state is SessionState.CLOSED
    (letter,) = stage.taken(ORDERED_DEAD)
    assert (letter["Body"], dead_letter_reason(letter)) == ("f[7]", "reading it ends the process with SIGSEGV")


def test_an_unreadable_timer_becomes_a_dead_letter_and_the_others_are_forwarded(stage):  # noqa: F811
    long_ago = datetime.now(UTC) - timedelta(seconds=11)
    stage.connect("c1", requestTimeEpoch=round(long_ago.timestamp() * 1000))
    for body in ("{}", '{"connection": "c1"}'):
        stage.sqs.send_message(QueueUrl=stage.urls[TIMERS], MessageBody=body)

    assert stage.process(TIMERS) == []
    assert stage.process() == []

    assert stage.replies("c1")[-1] == "close"
    (letter,) = stage.taken(ORDERED_DEAD)
    assert (letter["Body"], dead_letter_reason(letter)) == (
        "{}",
        "a message of 2 characters is not a timer: KeyError('connection')",
    )
    assert stage.history()[0] == ("dead_letter", "dead")


@pytest.fixture
def issuer(stage, monkeypatch):  # noqa: F811
    """An issuer on loopback whose users the realm trusts; `ann` may read and write the topics `trial…`."""
    with running_issuer() as running:
        trusted = LiveSettings(issuers=(Issuer(running.url, AUDIENCE, label="lab"),))
        exchanges = DynamoExchanges(stage.exchanges)
        stored = exchanges.find(REALM)
        assert exchanges.save(replace(stored, live=trusted), replacing=stored)
        grants = [Grant(right, TopicPattern.parse("trial", MatchPolicy.PREFIX)) for right in (Right.READ, Right.WRITE)]
        stage.live.put_item(Item=grants_item(REALM, UserName("ann@lab"), grants, version=1))
        # As on the local stage, which a variable names that AWS's clients read, too.
        verifier = JwtVerifier(IssuerKeys(JsonDocuments(allows_loopback=True)))
        monkeypatch.setattr(session_wiring, "tokens", lambda: verifier)
        yield running


def test_a_user_of_an_identity_provider_joins_publishes_and_renews(stage, issuer):  # noqa: F811
    stage.connect("c1")
    stage.say("c1", 1, REALM, {"authmethods": ["ticket"], "roles": {}})

    ((kind, _, details),) = stage.say("c1", 5, issuer.token(), {})
    assert (kind, details["authid"], details["authprovider"]) == (2, "ann@lab", "lab")

    stage.say("c1", 16, 2, {}, "trial.a", ["hello"])
    (message,) = stage.taken(NAMES.queue(REALM))
    assert message["MessageAttributes"]["publisher"]["StringValue"] == "ann@lab"
    assert stage.say("c1", 48, 3, {}, "signalbox.session.renew", [issuer.token("ES256")])[0][0] == 50
    assert stage.say("c1", 48, 4, {}, "signalbox.session.renew", [issuer.token(sub="ben")])[0][0] == 8
    assert stage.history() == [("session", "started"), ("session", "refused")]


def test_no_token_and_no_claim_of_one_is_stored_or_in_the_history(stage, issuer):  # noqa: F811
    valid, wrong = issuer.token(email="ann@example.org"), issuer.token(number=1, email="ann@example.org")
    for connection, token in (("c1", valid), ("c2", wrong)):
        stage.connect(connection)
        stage.say(connection, 1, REALM, {"authmethods": ["ticket"], "roles": {}})
        stage.say(connection, 5, token, {})

    stored = [one["document"] for one in stage.live.scan()["Items"] if "document" in one]
    documents = [zlib.decompress(bytes(one)).decode() for one in stored]
    assert len(documents) == 2
    for text in (*documents, *map(str, written_events(stage.s3))):
        assert "example.org" not in text
        assert valid.rpartition(".")[2] not in text
        assert wrong.rpartition(".")[2] not in text


def test_issuers_on_loopback_are_asked_on_the_local_stage_only(stage, monkeypatch):  # noqa: F811
    assert not session_wiring.tokens().keys.documents.allows_loopback

    session_wiring.tokens.cache_clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert session_wiring.tokens().keys.documents.allows_loopback
    session_wiring.tokens.cache_clear()


def test_the_sessions_of_a_user_share_its_part_of_the_patterns_of_a_realm(stage, monkeypatch):  # noqa: F811
    monkeypatch.setattr(realm_subscribers, "MAXIMUM_OF_USER", 8)
    monkeypatch.setattr(realm_subscribers, "KNOWN_FOR", timedelta(0))
    prefix = {"match": "prefix"}
    for connection in ("c1", "c2", "c3"):
        stage.join(connection)

    kinds = [stage.say(one, 32, 1, prefix, "trial.a")[0][0] for one in ("c1", "c2", "c3")]
    (refused,) = stage.say("c3", 32, 2, prefix, "trial.b")
    stage.say("c1", 6, {}, "wamp.close.normal")
    ((permitted, *_),) = stage.say("c3", 32, 3, prefix, "trial.b")

    assert kinds == [33, 33, 8]
    assert refused[:5] == [8, 32, 2, {}, "signalbox.error.too_many_subscriptions"]
    assert permitted == 33
