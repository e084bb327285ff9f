"""The realm of a bridge: what a live session reads back of what was published by SQS."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from signalbox.clients.bridge.realm import RealmBehind, check_realm
from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.messages.properties import InvalidPublication
from signalbox.exchange.model.records import OrderBy
from signalbox.live.bridge.checkpoints import Checkpoint, Intent, InvalidCheckpoint
from signalbox.live.bridge.publications import RowPublication
from tests.fakes.live_router import REALM, Router, grants, running
from tests.unit.clients.bridge.exchange import DAY, AwsAway, Exchange, realm


@pytest.fixture
def router() -> Iterator[Router]:
    with running({"cluster": grants("record.", "bridge.")}) as router:
        yield router


@pytest.fixture
def exchange(router: Router) -> Exchange:
    return Exchange(router)


def row(number: int, topic: str = "record.a") -> RowPublication:
    return RowPublication(number, topic, json.dumps({"id": number}), headers={"log_id": str(number)})


def test_a_new_realm_has_no_checkpoint(exchange):
    assert realm(exchange).checkpoint() is None


def test_the_checkpoint_is_the_latest_saved_one(exchange):
    one = realm(exchange)
    for position in (1, 2):
        one.save(Checkpoint(position))

    stored = one.checkpoint()

    assert stored is not None
    assert stored.checkpoint == Checkpoint(2)
    assert datetime.now(UTC) - stored.at < DAY


def test_a_checkpoint_that_is_not_yet_routed_is_awaited(exchange):
    """The marker is behind it in the same message group."""
    one = realm(exchange)
    one.save(Checkpoint(1))
    exchange.is_routing = False
    one.save(Checkpoint(2))
    exchange.is_routing = True

    stored = one.checkpoint()

    assert stored is not None
    assert stored.checkpoint == Checkpoint(2)


def test_a_realm_that_routes_nothing_is_behind(exchange):
    exchange.is_routing = False

    with pytest.raises(RealmBehind, match=r"trial.fifo"):
        realm(exchange, marker_seconds=0.1).checkpoint()


def test_a_checkpoint_of_somebody_else_is_refused(exchange):
    exchange.router.publish("bridge.arvados", "text", retain=True)

    with pytest.raises(InvalidCheckpoint):
        realm(exchange).checkpoint()


def test_the_log_has_the_rows_that_were_published(exchange):
    one = realm(exchange)
    since = datetime.now(UTC)
    for published in (row(1), row(2, "record.b")):
        one.publish(published)
    exchange.router.publish("record.a", {"id": 3})

    window = [Intent(1, "record.a"), Intent(2, "record.b"), Intent(3, "record.a")]
    assert one.logged(window, since=since) == {*window[:2]}


def test_a_log_that_may_have_lost_events_is_refused_with_the_ways_out(exchange):
    one = realm(exchange, age=timedelta(hours=1), now=lambda: datetime.now(UTC) + timedelta(hours=2))

    with pytest.raises(RejectedError, match=r"rows 4 to 6 .* 6 leaves them out, 3 publishes them"):
        one.logged([Intent(4, "record.a"), Intent(6, "record.a")], since=datetime.now(UTC))


def test_a_log_without_a_limit_of_age_is_read(exchange):
    one = realm(exchange, age=None, now=lambda: datetime.now(UTC) + timedelta(days=900))

    assert one.logged([Intent(4, "record.a")], since=datetime.now(UTC)) == set()


def test_a_row_is_accepted_once(exchange):
    one = realm(exchange)
    for _ in range(2):
        one.publish(row(1))

    assert [event.headers for event in exchange.router.log] == [{"log_id": "1"}]


@pytest.mark.parametrize(
    ("outcome", "error", "text"),
    [
        (AwsAway("no answer"), UnavailableError, "AWS: no answer"),
        ({}, UnavailableError, "did not confirm"),
    ],
    ids=["AWS is away", "not confirmed"],
)
def test_a_message_that_is_not_accepted_is_an_error(exchange, outcome, error, text):
    exchange.outcomes = [outcome]

    with pytest.raises(error, match=text):
        realm(exchange).publish(row(1))


def test_an_invalid_message_is_an_error(exchange):
    with pytest.raises(InvalidPublication, match="255 are allowed"):
        realm(exchange).publish(row(1, "a" * 300))


def document(**live: Any) -> dict[str, Any]:
    known = {"order_by": "exchange", "retention": {"count": 1000, "age_seconds": 86_400}, "rules": {}}
    return {"exchange": REALM, "live": {**known, **live}}


def test_the_shortest_retention_of_the_topics_counts():
    rules = {"record.collection.": {"count": None, "age_seconds": 3_600}, "trial.": {"age_seconds": 60}}

    assert check_realm(document(), ["record."]) == (OrderBy.EXCHANGE, DAY)
    assert check_realm(document(rules=rules), ["record."]) == (OrderBy.EXCHANGE, timedelta(hours=1))
    assert check_realm(document(retention={"count": 5, "age_seconds": None}), ["record."]) == (OrderBy.EXCHANGE, None)


@pytest.mark.parametrize(
    ("exchange", "problem"),
    [
        ({"exchange": REALM, "live": None}, "is not live"),
        (document(order_by="topic"), "declare it with --order-by exchange"),
        (document(retention={"age_seconds": 60}), "keeps events for less than"),
    ],
    ids=["not live", "by topic", "short"],
)
def test_an_exchange_that_cannot_be_the_realm_of_a_bridge_is_refused(exchange, problem):
    with pytest.raises(RejectedError, match=problem):
        check_realm(exchange, ["record."])
