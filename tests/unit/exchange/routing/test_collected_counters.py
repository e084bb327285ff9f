"""The counters that a function instance collects: how often they are written, and that none is lost."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.exchange.routing.batch_report import CollectedCounters
from signalbox.exchange.routing.ports import Counts

START = datetime(2026, 11, 27, 12, tzinfo=UTC)
EXCHANGE = ResourceRef(ResourceKind.EXCHANGE, "xs")
QUEUES = [ResourceRef(ResourceKind.QUEUE, f"q_mallory_{number}") for number in range(100)]


@dataclass
class Instance:
    """A function instance on a virtual clock, which counts its writes."""

    now: datetime = START
    writes: Counter[tuple[ResourceRef, datetime]] = field(default_factory=Counter)
    received: Counter[ResourceRef] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.counters = CollectedCounters(self, lambda: self.now)

    def add(self, counts: Counts, *, at: datetime) -> None:
        for resource, counted in counts.items():
            self.writes[resource, at] += 1
            self.received[resource] += counted["received"]

    def batches(self, *queues: ResourceRef, seconds: float, every: float) -> int:
        """Route batches with a message for each queue; return their number."""
        for _ in range(number := round(seconds / every)):
            self.now += timedelta(seconds=every)
            self.counters.add({one: {"received": 1} for one in (EXCHANGE, *queues)}, at=self.now)
            self.counters.write_due()
        return number


@pytest.mark.parametrize("queues", [1, 10, 100])
def test_an_instance_writes_ten_counters_a_second_whatever_a_source_binds(queues: int) -> None:
    instance = Instance()

    number = instance.batches(*QUEUES[:queues], seconds=60, every=0.05)
    writes = instance.writes.total()
    instance.counters.flush()

    assert writes <= 10 * 60 + queues + 1
    assert instance.received == dict.fromkeys((EXCHANGE, *QUEUES[:queues]), number)


def test_the_counters_of_a_batch_that_comes_alone_are_written_at_once() -> None:
    instance = Instance()

    for number in range(1, 4):
        instance.batches(*QUEUES, seconds=20, every=20)
        assert instance.received[QUEUES[0]] == number


def test_an_instance_with_thousands_of_queues_writes_them_once_a_minute() -> None:
    instance, queues = Instance(), [ResourceRef(ResourceKind.QUEUE, f"q_{number}") for number in range(2_000)]

    instance.batches(*queues, seconds=60, every=1)
    assert instance.received[queues[0]] == 1

    instance.batches(*queues, seconds=6, every=1)
    assert instance.received[queues[0]] == 61


def test_no_message_waits_for_the_writes_of_more_than_a_thousand_counters() -> None:
    instance, queues = Instance(), [ResourceRef(ResourceKind.QUEUE, f"q_{number}") for number in range(2_500)]

    written = []
    for _ in range(4):
        instance.batches(*queues, seconds=1, every=1)
        written.append(instance.writes.total() - sum(written))

    assert written == [1_000, 1_000, 501, 0]


def test_increments_of_a_minute_are_written_together_with_its_last_time() -> None:
    instance = Instance()
    instance.batches(*QUEUES, seconds=1, every=1)
    instance.batches(seconds=2, every=1)
    instance.batches(seconds=60, every=60)

    instance.counters.flush()

    times = sorted((at - START).total_seconds() for resource, at in instance.writes if resource == EXCHANGE)
    assert times == [1, 3, 63]
