"""The sweeper deletes queues that a crash left, and the mappings of idle retry queues, and no others."""

from datetime import timedelta

import pytest

from signalbox.exchange.control.scheduled_tasks import ExchangeQueueSweeper, disconnect_unused_retries
from signalbox.exchange.model.records import QueueSize
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName, QueueUrl
from tests.fakes.found_queues import MemoryFoundQueue, MemoryFoundQueues
from tests.unit.exchange.control.stage import ExchangeStage

OURS = {STAGE_TAG: "box", CAPABILITY_TAG: "exchange"}


class Sweep:
    def __init__(self) -> None:
        self.stage = ExchangeStage()
        self.found = MemoryFoundQueues()
        self.desk = ExchangeQueueSweeper(self.stage.ports, self.found)

    def add(self, name: str, *, hours: int = 25, waiting: int = 0, **tags: str) -> None:
        at = self.stage.time.now() - timedelta(hours=hours)
        self.found.queues[QueueUrl(name)] = MemoryFoundQueue({**OURS, **tags}, at)
        self.stage.sqs.queues.setdefault(QueueName(name), None)
        self.stage.sqs.held[QueueName(name)] = QueueSize(waiting)


@pytest.mark.parametrize("name", ["xs_alice", "xs_alice.fifo", "xs_alice-dlq.fifo", "q_alice_x", "q_alice_x-dlq"])
def test_a_queue_that_stands_behind_nothing_is_deleted_after_a_day(name: str):
    sweep = Sweep()
    sweep.add(name)

    assert list(sweep.desk.delete_strays(sweep.stage.task_time())) == sweep.found.deleted == [name]


def test_young_filled_and_foreign_queues_are_kept():
    sweep = Sweep()
    sweep.add("xs_young", hours=23)
    sweep.add("q_full", waiting=1)
    sweep.add("xs_theirs", **{STAGE_TAG: "other"})
    sweep.add("xs_splits", **{CAPABILITY_TAG: "splitting"})
    sweep.add("orders")

    assert list(sweep.desk.delete_strays(sweep.stage.task_time())) == sweep.found.deleted == []
    assert sorted(sweep.found.asked_for_tags) == ["xs_splits", "xs_theirs"]  # AWS allows few such calls


def left_queues(sweep: Sweep, count: int) -> list[str]:
    """Declare and delete queues with a dead letter each, two days ago; return the dead-letter queues."""
    for number in range(count):
        sweep.stage.ask("declare_queue", queue=f"q_alice_{number}")
        sweep.add(f"q_alice_{number}-dlq", waiting=1)
        sweep.stage.ask("delete_queue", queue=f"q_alice_{number}")
    sweep.stage.time.pass_by(timedelta(days=2))
    return [f"q_alice_{number}-dlq" for number in range(count)]


def test_dead_letter_queues_of_deleted_queues_are_deleted_when_they_are_empty_without_a_call_for_tags():
    """Before, a sweep looked at the tags of each, four a second: a hundred a day."""
    sweep = Sweep()
    names = left_queues(sweep, 500)

    assert list(sweep.desk.delete_strays(sweep.stage.task_time())) == []

    sweep.stage.sqs.held.clear()
    runs = [list(sweep.desk.delete_strays(sweep.stage.task_time())) for _ in range(2)]
    assert (sorted(runs[0]), runs[1]) == (sorted(names), [])
    assert (sweep.stage.sqs.queues, sweep.stage.left.records) == ({}, {})
    assert sweep.found.asked_for_tags == []


def test_a_dead_letter_queue_is_kept_for_a_day_and_with_a_queue_that_is_declared_again():
    sweep = Sweep()
    (name,) = left_queues(sweep, 1)
    sweep.stage.sqs.held.clear()
    sweep.stage.ask("declare_queue", queue="q_alice_0")

    assert list(sweep.desk.delete_strays(sweep.stage.task_time())) == []
    assert (name in sweep.stage.sqs.queues, sweep.stage.left.records) == (True, {})

    sweep.stage.sqs.held[QueueName(name)] = QueueSize(1)
    sweep.stage.ask("delete_queue", queue="q_alice_0")
    sweep.stage.sqs.held.clear()
    assert list(sweep.desk.delete_strays(sweep.stage.task_time())) == []
    assert name in sweep.stage.sqs.queues


def test_strays_of_others_are_deleted_while_some_cost_more_time_than_a_run_has():
    sweep = Sweep()
    tags = sweep.found.tags
    sweep.found.tags = lambda url: [sweep.stage.time.pass_by(timedelta(seconds=1)), tags(url)][1]  # type: ignore[assignment, method-assign, return-value]
    for number in range(300):
        sweep.add(f"q_theirs.{number}", **{STAGE_TAG: "other"})
    sweep.add("xs_alice")

    runs = [list(sweep.desk.delete_strays(sweep.stage.task_time())) for _ in range(20)]

    assert [name for run in runs for name in run] == ["xs_alice"]


def test_declared_queues_and_their_dead_letters_are_kept():
    sweep = Sweep()
    sweep.stage.ask("declare_exchange", exchange="xpublic.fifo")
    sweep.stage.ask("declare_queue", queue="q_alice.subscribe.weather")
    for name in ("xpublic.fifo", "xpublic-dlq.fifo", *(one for one in sweep.stage.sqs.queues if one.startswith("q_"))):
        sweep.add(name)

    assert list(sweep.desk.delete_strays(sweep.stage.task_time())) == []
    assert len(sweep.found.queues) == 4
    assert sweep.found.looked_at == []  # a known queue costs no call


def test_a_queue_that_was_deleted_meanwhile_is_skipped():
    sweep = Sweep()
    sweep.add("xs_gone")
    sweep.stage.sqs.delete(QueueName("xs_gone"))

    assert list(sweep.desk.delete_strays(sweep.stage.task_time())) == []


def test_an_exchange_that_was_never_finished_is_disconnected_first():
    sweep = Sweep()
    sweep.add("xs_alice")
    sweep.stage.mappings.connect(QueueName("xs_alice"))

    list(sweep.desk.delete_strays(sweep.stage.task_time()))

    assert sweep.stage.mappings.connected == set()


@pytest.mark.parametrize(("used", "waiting", "stays"), [("xa.fifo", 0, False), ("xa.fifo", 1, True), ("xa", 0, True)])
def test_a_retry_queue_that_no_exchange_uses_is_read_only_while_copies_wait(used: str, waiting: int, *, stays: bool):
    stage = ExchangeStage()
    standard, ordered = stage.ports.names.retry_queues
    for queue in (standard, ordered):
        stage.sqs.queues[queue] = None
        stage.mappings.connect(queue)
    stage.sqs.held[standard] = QueueSize(waiting)
    stage.ask("declare_exchange", exchange=used)

    disconnect_unused_retries(stage.ports)

    assert (standard in stage.mappings.retries) == stays
