"""The status of exchanges and queues, with sr3's states and thresholds."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.exchange.control.status import (
    HISTORY,
    Observation,
    ResourceState,
    backlog_lag,
    exchange_status,
    queue_status,
)
from signalbox.exchange.model.records import DeclaredQueue, ListedExchange, MinuteCounts, QueueActivity, QueueSize
from tests.fakes.clock import START

NOW = START + timedelta(hours=3)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
LISTED = ListedExchange("xpublic", None, START)
QUEUE = DeclaredQueue("q_a", None, created_at=START, declared_at=START)
EMPTY = QueueSize(0)


def minute(ago=1, *, last=0, **counts):
    """Return the counters of the minute that began `ago` minutes ago; its last message came before the minute's end."""
    begins_at = NOW - ago * MINUTE
    return MinuteCounts(begins_at, last_at=begins_at + MINUTE - last * SECOND, **counts)


def state_of_queue(*minutes, size=EMPTY, **seen):
    return queue_status(QUEUE, Observation(minutes, size, **seen), NOW).state


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param({"minutes": [minute(received=1)], "size": None}, ResourceState.MISSING, id="no-queue-in-sqs"),
        pytest.param(
            {"minutes": [minute(9, received=5)], "size": QueueSize(5)}, ResourceState.HUNG, id="nobody-consumes"
        ),
        pytest.param(
            {"minutes": [minute(9, received=5)], "size": QueueSize(5, in_flight=1)},
            ResourceState.LAGGING,
            id="somebody-holds-one",
        ),
        pytest.param(
            {
                "minutes": [minute(9, received=5)],
                "size": QueueSize(5),
                "activity": QueueActivity(received_at=NOW - MINUTE),
            },
            ResourceState.LAGGING,
            id="somebody-received",
        ),
        pytest.param(
            {"minutes": [minute(received=1)], "size": QueueSize(1)}, ResourceState.RUNNING, id="one-has-just-come"
        ),
        pytest.param({"minutes": [minute(retried=1001)], "size": EMPTY}, ResourceState.RETRY, id="over-1000-retries"),
        pytest.param({"minutes": [minute(retried=1000)], "size": EMPTY}, ResourceState.RUNNING, id="1000-retries"),
        pytest.param({"minutes": [minute(received=1, dead=4)], "size": EMPTY}, ResourceState.REJECT, id="80-percent"),
        pytest.param({"minutes": [minute(received=2, dead=7)], "size": EMPTY}, ResourceState.RUNNING, id="78-percent"),
        pytest.param({"minutes": [minute(16, received=1)], "size": EMPTY}, ResourceState.RUNNING, id="900-seconds"),
        pytest.param(
            {"minutes": [minute(16, received=1, last=1)], "size": EMPTY}, ResourceState.IDLE, id="901-seconds"
        ),
        pytest.param({"minutes": [], "size": EMPTY}, ResourceState.IDLE, id="nothing-ever"),
    ],
)
def test_a_queue_is_in_the_first_state_that_applies(seen, expected):
    assert queue_status(QUEUE, Observation(**seen), NOW).state is expected


def test_a_resource_that_is_being_deleted_is_in_shutdown():
    leaving = replace(QUEUE, is_deleting=True)

    assert queue_status(leaving, Observation([], None), NOW).state is ResourceState.SHUTDOWN


@pytest.mark.parametrize(("seconds", "expected"), [(450, ResourceState.LAGGING), (451, ResourceState.HUNG)])
def test_a_consumer_is_missed_after_450_seconds(seconds, expected):
    queue = replace(QUEUE, consumed_at=NOW - seconds * SECOND)

    assert queue_status(queue, Observation([minute(30, received=5)], QueueSize(5)), NOW).state is expected


@pytest.mark.parametrize(("seconds", "expected"), [(30, ResourceState.RUNNING), (31, ResourceState.LAGGING)])
def test_a_queue_lags_after_30_seconds(seconds, expected):
    activity = QueueActivity(oldest=seconds * SECOND)

    assert state_of_queue(minute(received=1), size=QueueSize(1), activity=activity) is expected


@pytest.mark.parametrize(
    ("minutes", "waiting", "seconds"),
    [
        pytest.param([], 0, 0, id="nothing-waits"),
        pytest.param([minute(received=10)], 1, 0, id="the-last-one"),
        pytest.param([minute(received=10)], 6, 30, id="half-a-minute-of-messages"),
        pytest.param([minute(2, received=10), minute(received=10)], 16, 90, id="a-minute-and-a-half"),
        pytest.param([minute(9, received=5), minute(received=0)], 1, 480, id="the-last-one-of-long-ago"),
        pytest.param([replace(minute(received=1), last_at=None)], 1, 0, id="without-a-last-moment"),
        pytest.param([minute(received=10)], 11, HISTORY.total_seconds(), id="older-than-the-counters"),
    ],
)
def test_the_lag_is_how_long_ago_as_many_came_as_wait(minutes, waiting, seconds):
    assert backlog_lag(minutes, waiting, NOW) == seconds * SECOND


def test_clocks_that_differ_do_not_make_a_lag_below_zero():
    assert backlog_lag([minute(0, received=1)], 1, NOW) == timedelta(0)


@pytest.mark.parametrize(
    ("minutes", "size", "lag"),
    [
        pytest.param([minute(received=300)], EMPTY, 0, id="nothing-waits"),
        pytest.param([minute(received=300)], QueueSize(60), 60, id="a-minute-at-this-rate"),
        pytest.param([minute(9, received=1)], QueueSize(1), 480, id="nothing-is-routed"),
        pytest.param([], QueueSize(1), 3 * 3600, id="nothing-was-ever-routed"),
    ],
)
def test_the_lag_of_an_exchange_is_what_it_takes_to_route_what_waits(minutes, size, lag):
    found = exchange_status(LISTED, Observation(minutes, size), NOW).lag

    assert found == lag * SECOND


def test_an_exchange_hangs_when_nothing_is_routed_for_long():
    assert exchange_status(LISTED, Observation([minute(9, received=1)], QueueSize(1)), NOW).state is ResourceState.HUNG
    assert exchange_status(LISTED, Observation([], QueueSize(1)), NOW).state is ResourceState.HUNG
    assert exchange_status(LISTED, Observation([], QueueSize(1, in_flight=1)), NOW).state is ResourceState.LAGGING
    assert exchange_status(LISTED, Observation([], None), NOW).state is ResourceState.MISSING


@pytest.mark.parametrize(("rejected", "expected"), [(4, ResourceState.REJECT), (3, ResourceState.RUNNING)])
def test_an_exchange_rejects_when_most_of_what_comes_has_no_routing_key(rejected, expected):
    minutes = [minute(received=5, rejected=rejected, dead=5)]

    assert exchange_status(LISTED, Observation(minutes, EMPTY), NOW).state is expected


def test_a_queues_status_covers_five_minutes():
    minutes = [
        minute(6, received=1000),
        minute(4, received=200, retried=1, dead=2, redelivered=3, size_bytes=3000),
        minute(2, received=100),
    ]
    activity = QueueActivity(received_at=NOW - SECOND, removed=150)

    document = queue_status(QUEUE, Observation(minutes, QueueSize(3, 2, 1), 4, activity), NOW).as_document()

    assert document == {
        "name": "q_a",
        "state": "lagging",
        "ordered": False,
        "queued": 4,
        "in_flight": 2,
        "lag_seconds": 61.2,
        "rate_in": 1.0,
        "rate_out": 0.5,
        "bytes_in": 10.0,
        "rejects": 2,
        "retries": 1,
        "redelivered": 3,
        "dropped": 0,
        "alternate": 0,
        "dead_letters": 4,
        "last_activity": "2026-11-21T14:59:00+00:00",
        "last_consumer": "2026-11-21T14:59:59+00:00",
    }


def test_an_exchanges_status_covers_five_minutes():
    minutes = [minute(received=150, routed=300, dropped=10, alternate=5, rejected=1)]

    document = exchange_status(LISTED, Observation(minutes, EMPTY), NOW).as_document()

    assert document == {
        "name": "xpublic",
        "state": "running",
        "ordered": False,
        "queued": 0,
        "in_flight": 0,
        "lag_seconds": 0.0,
        "rate_in": 0.5,
        "rate_out": 1.0,
        "bytes_in": 0.0,
        "rejects": 1,
        "retries": 0,
        "redelivered": 0,
        "dropped": 10,
        "alternate": 5,
        "dead_letters": 0,
        "last_activity": "2026-11-21T15:00:00+00:00",
        "last_consumer": None,
    }


def test_unknown_values_are_null():
    document = queue_status(QUEUE, Observation([], EMPTY), NOW).as_document()

    assert (document["rate_out"], document["last_activity"], document["last_consumer"]) == (None, None, None)
