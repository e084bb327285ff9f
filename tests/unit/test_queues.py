"""Names of queues in SQS."""

import pytest

from signalbox.queues import InvalidQueueName, parse_any_queue_name


@pytest.mark.parametrize("name", ["orders", "orders.fifo", "Q_1-a"])
def test_a_name_may_be_that_of_a_standard_or_a_fifo_queue(name):
    assert parse_any_queue_name(name) == name


@pytest.mark.parametrize("name", ["", ".fifo", "orders.fifo.fifo", "kept/orders", "o" * 81])
def test_other_names_are_refused(name):
    with pytest.raises(InvalidQueueName):
        parse_any_queue_name(name)
