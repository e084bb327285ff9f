"""The functions of live for Arvados' clients: the token at `$connect`, and the frames after it."""

import json
import logging

import pytest

from lambdas.live import receive, wiring
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.live.model.state import ConnectionId, Dialect, SessionState
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.handlers.environment import written_events
from tests.handlers.live.live_stage import INBOX, REALM, TIMERS, LiveStage, stage  # noqa: F401 - fixtures

SECRET = "a-secret"
TOKEN = f"v2/source/{SECRET}"


@pytest.fixture
def realm(stage) -> LiveStage:  # noqa: F811
    exchanges = DynamoExchanges(stage.exchanges)
    found = exchanges.find(REALM)
    stage.exchanges.update_item(
        Key={"pk": f"exchange#{REALM}", "sk": "exchange"},
        UpdateExpression="SET live.arvados = :yes",
        ExpressionAttributeValues={":yes": True},
    )
    assert found is not None
    assert exchanges.make_arvados_realm(REALM, replacing=None)
    return stage


def texts(stage: LiveStage) -> str:  # noqa: F811
    """Return everything that is stored, waiting in a queue or in the history."""
    items = stage.live.scan()["Items"]
    queued = [stage.taken(name, keep=True) for name in stage.urls]
    return repr(items) + repr(queued) + repr(list(written_events(stage.s3)))


def frame(stage: LiveStage, text: str) -> list[object]:  # noqa: F811
    context = {"routeKey": "$default", "connectionId": "c1", "requestId": text}
    receive.handler({"body": text, "requestContext": context}, None)
    assert stage.process() == []
    return stage.replies("c1")


def test_a_client_with_a_token_joins_without_a_subprotocol_and_subscribes(realm) -> None:
    assert realm.connect("c1", {}, token=TOKEN) == {"statusCode": 200}
    assert realm.process() == []

    stored = wiring.sessions().find(ConnectionId("c1"))
    assert stored is not None
    session = stored.session
    assert (session.state, session.dialect, session.realm) == (SessionState.JOINED, Dialect.ARVADOS, REALM)
    assert frame(realm, '{"method":"subscribe","filters":[],"last_log_id":5}') == [{"status": 200}, "catch_up"]
    assert frame(realm, "nonsense") == [{"status": 400}]
    assert frame(realm, '{"method":"unsubscribe","filters":[]}') == [{"status": 200}]
    assert realm.history() == [
        ("session", "started"),
        ("subscription", "subscribed"),
        ("frame", "refused"),
        ("subscription", "unsubscribed"),
    ]


def test_a_token_is_neither_stored_nor_sent_nor_logged(realm, caplog) -> None:
    with caplog.at_level(logging.DEBUG, logger="lambdas"):
        realm.connect("c1", {}, token=TOKEN)
        realm.connect("c2", {}, token=TOKEN + "-wrong")
        found = texts(realm)
        realm.process()

    assert SECRET not in found + texts(realm)
    assert SECRET not in caplog.text


def test_a_wrong_token_is_refused_and_counted(realm, capsys) -> None:
    refused = realm.connect("c1", {}, token="v2/source/wrong")

    assert refused["statusCode"] == 401
    assert "expected v2/USER/SECRET" in refused["body"]
    assert wiring.sessions().find(ConnectionId("c1")) is None
    assert realm.history() == [("session", "refused")]
    assert realm.taken(INBOX) == realm.taken(TIMERS) == []
    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["SessionRefused"] for one in metrics if "SessionRefused" in one] == [[1.0]]


def test_a_stage_without_a_realm_for_arvados_refuses_tokens(stage) -> None:  # noqa: F811
    assert stage.connect("c1", {}, token=TOKEN)["statusCode"] == 404


def test_a_client_without_a_token_must_offer_wamp(realm) -> None:
    assert realm.connect("c1", {})["statusCode"] == 400
    assert realm.connect("c1", {}, token="")["statusCode"] == 400
    assert realm.connect("c2", token=TOKEN)["headers"] == {"Sec-WebSocket-Protocol": "wamp.2.json"}
