"""The oldest message of the queues that are created at run time is measured, at a small price."""

from datetime import timedelta

from signalbox.exchange.control.scheduled_tasks import BacklogService
from signalbox.exchange.model.records import QueueActivity, QueueSize, User
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.unit.exchange.control.stage import ExchangeStage

ALICE_CONTROL = QueueName("box-exchange-control-alice")


def stage_with(**waiting: int) -> ExchangeStage:
    stage = ExchangeStage()
    for name in ("xpublic", "xs_alice"):
        stage.ask("declare_exchange", exchange=name)
    for name, number in waiting.items():
        stage.sqs.queues.setdefault(QueueName(name), None)  # type: ignore[arg-type]
        stage.sqs.held[QueueName(name)] = QueueSize(number)
    return stage


def test_the_oldest_message_of_exchanges_and_users_counts():
    stage = stage_with(xpublic=3, **{ALICE_CONTROL: 1})
    stage.metrics.activities[QueueName("xpublic")] = QueueActivity(oldest=timedelta(minutes=2))
    stage.metrics.activities[ALICE_CONTROL] = QueueActivity(oldest=timedelta(minutes=9))

    assert BacklogService(stage.ports).oldest(stage.task_time()) == timedelta(minutes=9)


def test_a_live_only_user_has_no_control_queue_to_measure():
    stage, queue = stage_with(), QueueName("box-exchange-control-lee")
    stage.ports.store.users.put(User(UserName("lee"), Role.SUBSCRIBER, Ownership.STRICT, stage.time.now(), None))
    stage.sqs.queues[queue] = None  # type: ignore[assignment]
    stage.sqs.held[queue] = QueueSize(1)

    assert BacklogService(stage.ports).oldest(stage.task_time()) is None
    assert stage.metrics.asked == []


def test_only_queues_with_waiting_messages_are_looked_up_in_cloudwatch():
    stage = stage_with(xpublic=1)
    stage.sqs.held[QueueName("xs_alice")] = QueueSize(0, in_flight=7)

    assert BacklogService(stage.ports).oldest(stage.task_time()) is None  # CloudWatch has no value yet
    assert stage.metrics.asked == ["xpublic"]
