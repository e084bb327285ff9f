"""What strangers cost at the limits of the live API is what the threat model states."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from lambdas.live import page, page_wiring
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings
from signalbox.history.prices import REPLY_READS
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.handlers.billed_calls import READS, recorded_calls
from tests.handlers.environment import clear_caches
from tests.handlers.live.live_stage import INBOX, REALM, TIMERS, LiveStage, stage  # noqa: F401 - fixtures
from tests.handlers.recorded_events import request
from tests.handlers.strangers import Bill, billed, day, stated

RUN = {"milliseconds": 60, "megabytes": 1024}
FRAMES = 10
PAGES_A_SECOND = 100  # ten times `page_concurrency`


def idle_connections(stage: LiveStage) -> Bill:  # noqa: F811 - a type
    """Connect, and send nothing; the runs are those of `connect`, the timer, `session` and `deliver`."""
    long_ago = round((datetime.now(UTC) - timedelta(seconds=11)).timestamp() * 1000)
    stage.sqs.send_message(QueueUrl=stage.urls[TIMERS], MessageBody='{"connection": "c1"}')
    with billed(**RUN, runs=6, WebSocket_message=1, WebSocket_connection_minute=1) as bill:
        stage.connect("c1", requestTimeEpoch=long_ago)
        stage.process(TIMERS)
        stage.process()
        stage.connect("c1", routeKey="$disconnect")
        stage.process()
    bill.units[READS] += REPLY_READS
    return bill


def wrong_secrets(stage: LiveStage) -> Bill:  # noqa: F811 - a type
    stage.sqs.send_message(QueueUrl=stage.urls[TIMERS], MessageBody='{"connection": "c1"}')
    with billed(**RUN, runs=10, WebSocket_message=4, WebSocket_connection_minute=1) as bill:
        stage.connect("c1")
        stage.say("c1", 1, REALM, {"authid": "nobody", "authmethods": ["ticket"]})
        stage.say("c1", 5, "wrong", {})
        stage.connect("c1", routeKey="$disconnect")
        stage.process()
        stage.process(TIMERS)
        stage.process()
    bill.units[READS] += 2 * REPLY_READS
    return bill


def frames(stage: LiveStage) -> Bill:  # noqa: F811 - a type
    """Send ten frames at once on a connection that is over, each of which API Gateway puts into the inbox."""
    for _ in range(FRAMES):
        stage.send("c1", "f[]")
    with billed(**RUN, WebSocket_message=FRAMES, SQS_FIFO_request=FRAMES + 2) as bill:
        assert stage.process() == []
    return Bill(Counter({item: number / FRAMES for item, number in bill.units.items()}))


@pytest.mark.parametrize(
    ("what", "act"),
    [
        ("connections that never join", idle_connections),
        ("connections with wrong secrets", wrong_secrets),
        ("frames", frames),
    ],
)
def test_strangers_cost_what_the_page_states(stage, what, act):  # noqa: F811 - fixture
    rate, usd = stated(what)

    assert day(act(stage), rate) == usd


@pytest.fixture
def realms(stage, monkeypatch):  # noqa: F811 - fixture
    monkeypatch.setenv("LIVE_WEBSOCKET_URL", "wss://live.example")
    monkeypatch.setenv("PAGE_LISTS_REALMS", "yes")
    clear_caches(page_wiring)
    for number in range(20):
        name = ExchangeName(f"xlab_{number}.fifo")
        DynamoExchanges(stage.exchanges).create(ExchangeRecord(name, None, datetime.now(UTC), live=LiveSettings()))
    yield
    clear_caches(page_wiring)


@pytest.mark.parametrize("path", ["/live/", "/live/renewed.html", "/live/config.json", "/live/app.js", "/health"])
def test_a_page_costs_strangers_what_the_page_states_at_most_and_reads_no_realms_again(realms, path):
    page.handler(request("page", path="/live/"), None)
    _, usd = stated("pages")

    with billed(milliseconds=60, HTTP_API_request=1) as bill, recorded_calls() as calls:
        assert page.handler(request("page", path=path), None)["statusCode"] == 200
    bill.units["SQS standard request"] += calls.count("sqs.GetQueueAttributes")

    assert "dynamodb.Query" not in calls
    assert day(bill, PAGES_A_SECOND) <= usd
