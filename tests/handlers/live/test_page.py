"""The function that serves the live page."""

import json
from datetime import UTC, datetime

import boto3
import pytest

from lambdas.live import page, page_wiring
from lambdas.shared import instance
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.aws import REGION, aws, exchange_table, sqs
from tests.handlers.recorded_events import request

__all__ = ["aws", "exchange_table", "sqs"]

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
WEBSOCKET_URL = f"wss://abc.execute-api.{REGION}.amazonaws.com/live"


@pytest.fixture
def live(exchange_table, sqs, monkeypatch: pytest.MonkeyPatch):
    boto3.client("dynamodb").create_table(
        TableName="Live",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )
    settings = {"LIVE_TABLE": "Live", "EXCHANGE_TABLE": "Exchanges", "LIVE_WEBSOCKET_URL": WEBSOCKET_URL}
    settings["PAGE_LISTS_REALMS"] = "yes"
    for name in ("inbox", "outbox"):
        settings[f"LIVE_{name.upper()}_URL"] = sqs.create_queue(QueueName=name)["QueueUrl"]
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    wired = (instance.settings, page_wiring.exchanges, page_wiring.live_exchanges, page_wiring.health)
    for one in wired:
        one.cache_clear()
    yield
    for one in wired:
        one.cache_clear()


def asked(path: str, *, query: dict[str, str] | None = None, **headers: str) -> dict:
    return page.handler(request("page", path=path, query=query, headers=headers), None)


def test_the_page_is_served_with_a_policy_against_foreign_resources(live):
    response = asked("/live/")

    assert response["statusCode"] == 200
    assert response["body"].startswith("<!doctype html>")
    assert response["headers"]["Content-Type"] == "text/html; charset=utf-8"
    policy = response["headers"]["Content-Security-Policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"} <= set(policy)
    assert f"connect-src 'self' wss://abc.execute-api.{REGION}.amazonaws.com" in policy
    assert "unsafe" not in " ".join(policy)


def test_a_cached_file_is_not_sent_again(live):
    etag = asked("/live/app.js")["headers"]["ETag"]

    again = asked("/live/app.js", **{"if-none-match": f'"other", W/{etag}'})
    changed = asked("/live/app.js", **{"if-none-match": '"other"'})

    assert (again["statusCode"], again["body"], again["headers"]["ETag"]) == (304, "", etag)
    assert changed["statusCode"] == 200


@pytest.mark.parametrize("path", ["/live/nothing.js", "/live/../lambdas/live/page.py", "/live/%2e%2e/stacks/x.js"])
def test_other_paths_are_not_found(live, path):
    assert asked(path)["statusCode"] == 404


def test_the_path_without_a_trailing_slash_redirects(live):
    response = asked("/live")

    assert (response["statusCode"], response["headers"]["Location"]) == (308, "live/index.html")


def test_the_configuration_names_the_websocket_url_and_the_realms(live, exchange_table):
    exchanges = DynamoExchanges(exchange_table)
    for name, settings in (("trial.fifo", LiveSettings()), ("xpublic", None)):
        exchanges.create(ExchangeRecord(ExchangeName(name), None, NOW, live=settings))

    response = asked("/live/config.json")

    assert response["headers"]["Content-Type"] == "application/json"
    assert json.loads(response["body"]) == {
        "websocket_url": WEBSOCKET_URL,
        "realms": ["trial.fifo"],
        "issuers": [],
    }


def test_a_stage_can_keep_the_names_of_its_realms_from_strangers(live, exchange_table, monkeypatch):
    DynamoExchanges(exchange_table).create(ExchangeRecord(ExchangeName("trial.fifo"), None, NOW, live=LiveSettings()))
    monkeypatch.setenv("PAGE_LISTS_REALMS", "no")
    instance.settings.cache_clear()

    shown = json.loads(asked("/live/config.json")["body"])
    assert shown == {"websocket_url": WEBSOCKET_URL, "realms": [], "issuers": []}


def declare(exchange_table, name: str, *issuers: Issuer) -> None:
    live = LiveSettings(issuers=issuers)
    DynamoExchanges(exchange_table).create(ExchangeRecord(ExchangeName(name), None, NOW, live=live))


@pytest.mark.parametrize(
    ("realm", "issuers"), [("xlab.fifo", 1), ("xother.fifo", 0), ("xplain", 0), ("not a name", 0), ("", 0)]
)
def test_a_stage_that_lists_no_realms_shows_the_issuers_of_one_that_is_named(
    live, exchange_table, monkeypatch, realm, issuers
):
    declare(exchange_table, "xlab.fifo", Issuer("https://login.example", "urn:lab"))
    DynamoExchanges(exchange_table).create(ExchangeRecord(ExchangeName("xplain"), None, NOW))
    monkeypatch.setenv("PAGE_LISTS_REALMS", "no")
    instance.settings.cache_clear()

    shown = json.loads(asked("/live/config.json", query={"realm": realm})["body"])

    assert (shown["realms"], len(shown["issuers"])) == ([], issuers)


def directive(answer: dict, name: str) -> list[str]:
    policy = answer["headers"]["Content-Security-Policy"].split("; ")
    return next((one.split()[1:] for one in policy if one.startswith(f"{name} ")), [])


def test_the_policy_admits_exactly_the_origins_of_the_issuers(live, exchange_table):
    stage = [f"wss://abc.execute-api.{REGION}.amazonaws.com"]
    before = asked("/live/")
    declare(exchange_table, "xlab.fifo", Issuer("https://login.example/lab", "a"))
    declare(exchange_table, "xpool.fifo", Issuer("https://pool.example", "a", origins=("https://auth.pool.example",)))
    page_wiring.live_exchanges.cache_clear()  # as when the kept exchanges are too old
    after = asked("/live/", **{"if-none-match": before["headers"]["ETag"]})
    again = asked("/live/", **{"if-none-match": after["headers"]["ETag"]})

    origins = ["https://auth.pool.example", "https://login.example", "https://pool.example"]
    assert directive(before, "connect-src") == ["'self'", *stage]
    assert directive(before, "frame-src") == []
    assert directive(after, "connect-src") == ["'self'", *stage, *origins]
    assert directive(after, "frame-src") == ["'self'", *origins]
    assert (after["statusCode"], again["statusCode"]) == (200, 304)
    assert directive(again, "connect-src") == directive(after, "connect-src")
    assert directive(asked("/live/app.js"), "connect-src") == ["'self'", *stage]


def test_a_healthy_stage_returns_ok(live):
    response = asked("/health")

    assert (response["statusCode"], json.loads(response["body"])) == (200, {"health": "OK"})
    assert response["headers"]["Cache-Control"] == "no-store"
