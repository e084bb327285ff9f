"""The expiry of queues that were neither declared nor consumed from for a time."""

from datetime import timedelta

import pytest

from signalbox.exchange.control.scheduled_tasks import expired
from signalbox.exchange.model.records import DeclaredQueue, QueueActivity, QueueSettings, QueueSize
from tests.fakes.clock import START
from tests.unit.exchange.control.stage import ExchangeStage

MINUTE = timedelta(minutes=1)


def queue(*, declared=0, consumed=None, expires=10):
    return DeclaredQueue(
        "q_a",
        None,
        created_at=START,
        declared_at=START + declared * MINUTE,
        consumed_at=None if consumed is None else START + consumed * MINUTE,
        settings=QueueSettings(expires=None if expires is None else expires * MINUTE),
    )


@pytest.mark.parametrize(
    ("found", "minutes", "is_expired"),
    [
        pytest.param(queue(), 10, True, id="never-consumed"),
        pytest.param(queue(), 9, False, id="not-yet"),
        pytest.param(queue(declared=1), 10, False, id="declared-again"),
        pytest.param(queue(consumed=1), 10, False, id="consumed"),
        pytest.param(queue(consumed=1), 11, True, id="consumed-long-ago"),
        pytest.param(queue(declared=5, consumed=1), 12, False, id="declared-after-it-was-consumed"),
        pytest.param(queue(expires=None), 10**6, False, id="stays-for-ever"),
    ],
)
def test_a_queue_expires_after_its_last_sign_of_life(found, minutes, is_expired):
    assert bool(expired([found], START + minutes * MINUTE, delay=timedelta(0))) is is_expired


def test_late_metrics_delay_the_expiry():
    assert expired([queue()], START + 14 * MINUTE, delay=5 * MINUTE) == []
    assert expired([queue()], START + 15 * MINUTE, delay=5 * MINUTE) == [queue()]


@pytest.fixture
def stage():
    stage = ExchangeStage()
    stage.ask("declare_exchange", exchange="xpublic")
    stage.ask("declare_queue", queue="q_a", expires_seconds=600)
    stage.ask("declare_queue", queue="q_stays")
    stage.ask("bind", exchange="xpublic", queue="q_a", pattern="#")
    stage.events.clear()
    return stage


def test_an_unused_queue_is_deleted_with_its_bindings(stage):
    stage.time.pass_by(30 * MINUTE)

    assert stage.delete_expired() == ["q_a"]
    assert stage.delete_expired() == []
    assert stage.bindings.bound == {}
    assert "q_a" not in stage.sqs.queues
    assert stage.kinds() == [("deleted", "binding"), ("deleted", "queue")]
    assert stage.events[-1].reason == "nobody consumed from it for as long as it was to stay without"


def test_a_queue_with_signs_of_life_stays_and_costs_no_look_at_metrics(stage):
    stage.time.pass_by(29 * MINUTE)
    stage.ask("consuming", queue="q_a")
    stage.time.pass_by(29 * MINUTE)

    assert stage.delete_expired() == []
    assert stage.metrics.asked == []


def test_a_queue_that_is_polled_without_heartbeats_is_kept(stage):
    stage.metrics.activities["q_a"] = QueueActivity(received_at=START + 2 * MINUTE, removed=0)
    stage.time.pass_by(31 * MINUTE)

    assert stage.delete_expired() == []

    stage.time.pass_by(MINUTE)
    assert stage.delete_expired() == ["q_a"]


def test_the_metrics_of_a_queue_that_is_polled_without_heartbeats_are_read_as_seldom_as_it_could_expire(stage):
    """CloudWatch bills each look: 5.8 USD a day for 100 queues that were looked at each minute."""
    for minute in range(120):
        stage.metrics.activities["q_a"] = QueueActivity(received_at=START + minute * MINUTE, removed=0)
        assert stage.delete_expired() == []
        stage.time.pass_by(MINUTE)

    assert len(stage.metrics.asked) == 120 // 30 - 1
    assert stage.queues.records["q_a"].consumed_at == START + 90 * MINUTE


def test_a_queue_that_is_polled_while_its_metrics_are_silent_is_kept(stage):
    """SQS publishes metrics up to 15 minutes after a queue has become active, and here even later."""
    stage.metrics.silent.add("q_a")
    stage.time.pass_by(45 * MINUTE)

    assert stage.delete_expired() == []

    stage.metrics.silent.clear()
    assert stage.delete_expired() == ["q_a"]


def test_a_queue_with_messages_in_flight_is_kept(stage):
    stage.sqs.held["q_a"] = QueueSize(0, in_flight=1)
    stage.time.pass_by(30 * MINUTE)

    assert stage.delete_expired() == []
    assert stage.metrics.asked == []


def test_a_record_without_its_queue_is_deleted(stage):
    """An operator deleted the queue, so nothing will ever be measured."""
    stage.sqs.delete("q_a")
    stage.metrics.silent.add("q_a")
    stage.time.pass_by(30 * MINUTE)

    assert stage.delete_expired() == ["q_a"]


def test_a_queue_that_is_consumed_meanwhile_stays(stage):
    stage.time.pass_by(30 * MINUTE)
    stage.meanwhile(stage.metrics, "activity", lambda: stage.ask("consuming", queue="q_a"))

    assert stage.delete_expired() == []
    assert stage.queues.records.keys() == {"q_a", "q_stays"}


def test_a_deletion_that_was_killed_is_finished(stage):
    stage.time.pass_by(30 * MINUTE)
    stage.meanwhile(stage.sqs, "delete", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        stage.delete_expired()

    assert stage.delete_expired() == ["q_a"]


def test_overdue_queues_in_use_do_not_keep_those_of_others_from_expiring():
    """A look at a queue takes time, so that a run has not enough of it for all of them."""
    stage = ExchangeStage()
    used = [f"q_alice.{number}" for number in range(100)]
    for name in (*used, "q_bob"):
        stage.ask("declare_queue", queue=name, expires_seconds=60)
        stage.sqs.held[stage.ports.names.queue(name)] = QueueSize(0, in_flight=int(name != "q_bob"))
    stage.time.pass_by(timedelta(hours=1))
    sizes = stage.sqs.sizes
    stage.sqs.sizes = lambda names: [stage.time.pass_by(timedelta(seconds=1)), sizes(names)][1]  # type: ignore[assignment, method-assign]

    assert [name for _ in range(10) for name in stage.delete_expired()] == ["q_bob"]
