"""The settings of kept queues in DynamoDB and in memory, and the marks in the records of declared queues."""

from datetime import timedelta
from typing import Any

import pytest

from signalbox.aws.exchange.exchanges import DynamoQueues
from signalbox.aws.kept.settings import DynamoKeepSettings
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import DeclaredQueue
from signalbox.kept.settings import KeepSetting
from signalbox.queues import QueueName
from tests.fakes.aws import aws, exchange_table, split_table  # noqa: F401 - fixtures
from tests.fakes.clock import START
from tests.fakes.kept import MemoryKeepSettings

DAY = timedelta(days=1)
MEMES, ORDERS = QueueName("memes"), QueueName("orders.fifo")
KEPT = KeepSetting(MEMES, DAY, START, {"AIDAANN": "ann"})
REMOVED = KeepSetting(ORDERS, None, START + DAY, {}, declared="q_or.ders")


@pytest.fixture(params=["DynamoDB", "memory"])
def settings(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryKeepSettings()
    return DynamoKeepSettings(request.getfixturevalue("split_table"))


def test_settings_are_read_as_they_were_stored(settings):
    settings.put(KEPT)
    settings.put(REMOVED)

    assert (settings.find(MEMES), settings.find(ORDERS), settings.find(QueueName("other"))) == (KEPT, REMOVED, None)
    assert settings.every() == [KEPT, REMOVED]


def test_a_removed_setting_is_forgotten_unless_it_was_set_again(settings):
    settings.put(REMOVED)
    settings.put(KeepSetting(ORDERS, DAY, START + 2 * DAY, {}))
    settings.forget(REMOVED)
    assert settings.find(ORDERS) is not None

    settings.put(REMOVED)
    settings.forget(REMOVED)
    assert settings.find(ORDERS) is None


def test_a_declared_queue_is_marked_with_a_new_version(exchange_table):  # noqa: F811 - fixture
    queues = DynamoQueues(exchange_table)
    name = DeclaredName("q_a")
    queues.create(DeclaredQueue(name, None, START, START))

    assert queues.mark(name, DAY)
    found = queues.find(name)
    assert found is not None
    assert (found.settings.keep, found.version) == (DAY, 2)
    assert queues.mark(name, None)
    found = queues.find(name)
    assert found is not None
    assert (found.settings.keep, found.version) == (None, 3)


def test_a_queue_that_is_not_declared_cannot_be_marked(exchange_table):  # noqa: F811 - fixture
    queues = DynamoQueues(exchange_table)

    assert [queues.mark(DeclaredName("q_a"), keep_for) for keep_for in (DAY, None)] == [False, False]
    assert exchange_table.scan()["Items"] == []
