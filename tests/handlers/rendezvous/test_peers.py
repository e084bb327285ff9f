"""The functions of two stages that share their proxies, in two regions of moto."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from lambdas.rendezvous import answer, offer, poll
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.rendezvous.rules.peer_address import PeerAddress
from tests.fakes.aws import REGION as HOME
from tests.fakes.aws import make_lease_table, make_rendezvous_table
from tests.handlers.conftest import PREFIX, Stage, forget_everything
from tests.handlers.environment import create_delivery_stream, written_events
from tests.handlers.recorded_events import ACCOUNT, batch, client_id, event, message
from tests.handlers.rendezvous.test_answer import GONE

NEAR, AWAY = "eu-west-1", "ap-northeast-1"
SUCCESS = '{"Status":"success"}'


@dataclass(frozen=True, slots=True)
class Regions:
    """The stage of the home region; `enter` makes all functions those of another, which write to the same history."""

    home: Stage
    enter: Callable[[str], None]


def address(region: str) -> str:
    table = "Missing" if region == AWAY else "Rendezvous"
    return str(PeerAddress(region, f"stage-{region}", table, "key", "snowflake-broker", PREFIX))


@pytest.fixture
def regions(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Regions:
    """A stage in the home region and one near it, with cold functions; a third peer never responds."""
    monkeypatch.setenv("RENDEZVOUS_PEERS", ",".join(map(address, (HOME, NEAR, AWAY))))

    def enter(region: str) -> None:
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        monkeypatch.setenv("CLIENT_QUEUE_ARN_PREFIX", f"arn:aws:sqs:{region}:{ACCOUNT}:{PREFIX}")
        monkeypatch.setenv("BROKER_QUEUE_URL", f"https://sqs.{region}.amazonaws.com/{ACCOUNT}/snowflake-broker")
        forget_everything()

    enter(NEAR)
    make_rendezvous_table()
    make_lease_table()
    create_delivery_stream()
    stage.expect_proxies()
    enter(HOME)
    return Regions(stage, enter)


def home_of(events: list[dict[str, Any]], kind: str) -> list[str]:
    return [event["labels"]["home"] for event in events if event["kind"] == kind]


def test_a_client_gets_the_answer_of_a_proxy_in_another_region(regions):
    record = regions.home.received(message())
    parked = offer.handler(batch(record), None)
    regions.enter(NEAR)
    polled = poll.handler(event("poll"), None)
    answered = answer.handler(event("answer"), None)
    again = answer.handler(event("answer"), None)

    assert [one["itemIdentifier"] for one in parked["batchItemFailures"]] == [record["messageId"]]
    assert '"client match"' in polled["body"]
    assert (answered["body"], again["body"]) == (SUCCESS, GONE)
    regions.enter(HOME)
    assert regions.home.replies(client_id(record)) == [f'{{"answer":{json.dumps(sample_answer(sample_offer("1")))}}}']
    assert regions.home.in_flight() == 0


def test_the_events_of_a_match_name_the_region_of_the_client(regions):
    offer.handler(batch(regions.home.received(message())), None)
    regions.enter(NEAR)
    poll.handler(event("poll"), None)
    answer.handler(event("answer"), None)

    written = written_events(regions.home.s3)
    assert home_of(written, "proxy_poll") == [HOME]
    assert home_of(written, "answer") == [HOME]


def test_a_peer_that_does_not_respond_is_logged_once_and_delays_no_offer(regions, caplog):
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            offer.handler(batch(regions.home.received(message(f"client-{number}"))), None)

    reported = [record.getMessage() for record in caplog.records if "does not respond" in record.getMessage()]
    assert len(reported) == 1
    assert AWAY in reported[0]
    assert regions.home.history() == [("offer", "parked")] * 3


def test_an_own_answer_of_a_stage_with_peers_stays_in_its_region(regions):
    regions.home.expect_proxies()
    record = regions.home.received(message())
    offer.handler(batch(record), None)
    poll.handler(event("poll"), None)

    assert answer.handler(event("answer"), None)["body"] == SUCCESS
    assert len(regions.home.replies(client_id(record))) == 1
