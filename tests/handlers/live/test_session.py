"""The functions that begin sessions, take what clients say, and do what they ask for."""

import json
import uuid
from datetime import UTC, datetime, timedelta

import boto3
import pytest

from lambdas.live import session, wiring
from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.errors import RejectedError
from signalbox.exchange.model.records import User
from signalbox.live.session.connection import MAXIMUM_PER_SECOND
from signalbox.live.session.state import ConnectionId, State, opened
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.fakes.aws import aws, exchange_table, live_table, rendezvous_table, split_table, sqs  # noqa: F401 - fixtures
from tests.handlers.environment import dead_letter_reason
from tests.handlers.live.live_stage import (  # noqa: F401 - fixtures
    DEAD,
    INBOX,
    NAMES,
    ORDERED_DEAD,
    REALM,
    TIMERS,
    stage,
)

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
    assert message["Attributes"]["MessageGroupId"] == "trial.a"
    assert stage.history() == [("session", "started"), ("subscription", "subscribed")]


def test_a_connection_speaks_wamp_in_json_or_does_not_begin(stage):  # noqa: F811
    taken = stage.connect("c1")
    refused = stage.connect("c2", {"sec-websocket-protocol": "wamp.2.msgpack"})

    assert taken == {"statusCode": 200, "headers": {"Sec-WebSocket-Protocol": "wamp.2.json"}}
    assert refused["statusCode"] == 400
    assert "wamp.2.json" in refused["body"]
    assert wiring.sessions().find(ConnectionId("c1")).session.user_agent == "Test/1"
    assert wiring.sessions().find(ConnectionId("c2")) is None


def test_a_storm_is_turned_away(stage):  # noqa: F811
    now = round(datetime.now(UTC).timestamp() * 1000)
    stage.live.put_item(Item={"pk": f"second#{now // 1000}", "sk": "connections", "count": MAXIMUM_PER_SECOND})

    assert stage.connect("c1", requestTimeEpoch=now)["statusCode"] == 429
    assert stage.connect("c1", requestTimeEpoch=now + 1000)["statusCode"] == 200


def test_a_client_that_has_gone_leaves_nothing_behind(stage):  # noqa: F811
    stage.join()
    stage.say("c1", 32, 1, {}, "trial.a")

    assert stage.connect("c1", routeKey="$disconnect")["statusCode"] == 200
    stage.hear()

    kept = {item["pk"].partition("#")[0] for item in stage.live.scan()["Items"] if item["sk"] != "version"}
    assert kept == {"connection", "grants", "secret", "second"}
    assert stage.history()[-2:] == [("subscription", "unsubscribed"), ("session", "ended")]


def test_who_does_not_join_in_time_is_sent_away(stage):  # noqa: F811
    long_ago = datetime.now(UTC) - timedelta(seconds=11)
    stage.connect("c1", requestTimeEpoch=round(long_ago.timestamp() * 1000))
    stage.sqs.send_message(QueueUrl=stage.urls[TIMERS], MessageBody='{"connection": "c1"}')

    assert stage.hear(TIMERS) == []
    assert stage.hear() == []

    abort, close = stage.told("c1")
    assert (abort[2], close) == ("wamp.error.timeout", "close")


def test_connections_of_which_nobody_said_that_they_are_gone_are_swept(stage):  # noqa: F811
    opened_at = datetime.now(UTC) - timedelta(hours=2, minutes=7)
    wiring.sessions().open(opened(ConnectionId("old"), now=opened_at))
    stage.join("c1")

    assert session.handler({"task": "sweep"}, None) == {"lost": 1}
    assert stage.hear() == []

    assert session.handler({"task": "sweep"}, None) == {"lost": 0}


def test_an_unknown_task_is_refused(stage):  # noqa: F811
    with pytest.raises(RejectedError, match="known: sweep"):
        session.handler({"task": "dream"}, None)


def test_what_cannot_be_handled_holds_up_its_own_connection_only(stage):  # noqa: F811
    for connection in ("c1", "c2"):
        stage.connect(connection)
    stage.live.put_item(Item={"pk": "connection#c1", "sk": "session"})  # a record that nobody can read
    for connection in ("c1", "c1", "c2"):
        put(stage, connection, "f[6]")

    left = stage.hear()

    assert len(left) == 2
    assert [one[2] for one in stage.told("c2") if one != "close"] == ["wamp.error.protocol_violation"]


def test_what_nobody_can_read_in_an_inbox_is_put_aside_with_its_reason_and_is_in_nobodys_way(stage):  # noqa: F811
    stage.connect("c1")
    for body in ("f[6]", "nonsense", '{"heard": "music"}', '{"heard": "lost"}'):
        put(stage, "c1", body)

    assert stage.hear() == []

    assert [one[2] for one in stage.told("c1") if one != "close"] == ["wamp.error.protocol_violation"]
    assert wiring.sessions().find(ConnectionId("c1")).session.state is State.CLOSED  # what came behind was heard
    letters = stage.taken(ORDERED_DEAD)
    assert [(letter["Body"], letter["Attributes"]["MessageGroupId"]) for letter in letters] == [
        ("nonsense", "c1"),
        ('{"heard": "music"}', "c1"),
    ]
    assert list(map(dead_letter_reason, letters)) == [
        "expected 'f' and a frame, or a JSON object",
        "heard: expected one of killed, lost, elapsed, rights, not 'music'",
    ]
    assert stage.history().count(("dead_letter", "dead")) == 2


def test_what_cannot_be_put_aside_comes_again_with_what_is_behind_it(stage):  # noqa: F811
    stage.connect("c1")
    stage.sqs.delete_queue(QueueUrl=stage.urls[ORDERED_DEAD])
    for body in ("nonsense", "f[6]"):
        put(stage, "c1", body)

    assert len(stage.hear()) == 2

    assert stage.told("c1") == []
    assert ("dead_letter", "dead") not in stage.history()


def test_what_is_no_timer_is_put_aside_with_its_reason_and_the_others_are_told(stage):  # noqa: F811
    long_ago = datetime.now(UTC) - timedelta(seconds=11)
    stage.connect("c1", requestTimeEpoch=round(long_ago.timestamp() * 1000))
    for body in ("{}", '{"connection": "c1"}'):
        stage.sqs.send_message(QueueUrl=stage.urls[TIMERS], MessageBody=body)

    assert stage.hear(TIMERS) == []
    assert stage.hear() == []

    assert stage.told("c1")[-1] == "close"
    (letter,) = stage.taken(DEAD)
    assert (letter["Body"], dead_letter_reason(letter)) == (
        "{}",
        "a message of 2 characters is no timer: KeyError('connection')",
    )
    assert stage.history()[0] == ("dead_letter", "dead")


def put(stage, connection, body):  # noqa: F811
    stage.sqs.send_message(
        QueueUrl=stage.urls[INBOX],
        MessageBody=body,
        MessageGroupId=connection,
        MessageDeduplicationId=uuid.uuid4().hex,
    )


def test_a_glance_is_answered(stage, rendezvous_table, split_table):  # noqa: F811
    boto3.client("s3").put_object(Bucket="history", Key="reports/a.svg", Body=b"<svg/>")
    DynamoUsers(stage.exchanges).put(User(UserName("source"), Role.ADMIN, Ownership.STRICT, datetime.now(UTC), "AIDA"))
    stage.join()

    assert stage.say("c1", 48, 1, {}, "signalbox.overview")[0][3][0]["exchanges"][0]["name"] == REALM
    assert stage.say("c1", 48, 2, {}, "signalbox.report", ["a.svg"]) == [[50, 2, {}, ["<svg/>"]]]
    assert stage.say("c1", 48, 3, {}, "wamp.session.count") == [[50, 3, {}, [1]]]
