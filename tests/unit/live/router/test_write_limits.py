"""What a publisher may write to the logs in some seconds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from signalbox.exchange.matching.graph import Routes
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication
from signalbox.live.log.events import MAXIMUM_EVENT_BYTES
from signalbox.live.log.payloads import RETAIN_HEADER, RETAINED
from signalbox.live.router.publication_metadata import PublicationMetadata, metadata_text
from signalbox.live.router.write_limits import KNOWN_PUBLISHERS, PERIOD_SECONDS, PublisherLimits
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.messages import PublicationId
from tests.fakes.live_limits import NOW, MemoryKilobytes
from tests.unit.exchange.routing.naive_sqs import as_received

LARGE = "x" * 120_000


@dataclass
class World:
    """Function instances with one counter, and the number of publications that each publisher got through."""

    counter: MemoryKilobytes = field(default_factory=MemoryKilobytes)
    now: datetime = NOW
    number: int = 0

    def instance(self) -> PublisherLimits:
        return PublisherLimits(self.counter, lambda: self.now)

    def taken(self, instances: Sequence[PublisherLimits], *, batches: int, body: str, retain: bool = False) -> int:
        """Send batches of ten, each to the next instance; return how many publications were taken."""
        found = 0
        batch = [self.published(body, retain=retain) for _ in range(10)]
        for place in range(batches):
            found += 10 - len(instances[place % len(instances)].refused(batch))
        return found

    def published(self, body: str, *, publisher: str = "mallory", retain: bool = False) -> Publication:
        self.number += 1
        properties = MessageProperties.of_publication("a.b", body, {RETAIN_HEADER: RETAINED} if retain else {})
        message = as_received(properties.published(), message_id=str(self.number))
        return Publication(message, properties, Routes((), by_alternate=False), publisher)


@pytest.fixture
def world() -> World:
    return World()


def test_a_publisher_writes_1500_kb_a_second_at_all_instances_together(world: World) -> None:
    taken = world.taken([world.instance() for _ in range(200)], batches=400, body=LARGE)

    assert taken * len(LARGE) / PERIOD_SECONDS == pytest.approx(1_500 * 1_024, rel=0.1)


def test_retained_events_of_a_publisher_take_a_quarter_of_their_partition(world: World) -> None:
    taken = world.taken([world.instance()], batches=100, body=LARGE, retain=True)

    # One write unit for each KB: such events are written without a transaction.
    assert taken * len(LARGE) / 1_024 / PERIOD_SECONDS == pytest.approx(234, rel=0.01)


def test_small_events_of_a_publisher_are_1500_a_second(world: World) -> None:
    assert world.taken([world.instance()], batches=2_000, body="1") == pytest.approx(1_500 * PERIOD_SECONDS, rel=0.02)
    assert world.counter.calls < 160


def test_others_go_on_and_the_publisher_with_the_next_period(world: World) -> None:
    instance = world.instance()
    world.taken([instance], batches=100, body=LARGE)

    batch = [world.published("1"), world.published("1", publisher="alice")]

    assert instance.refused(batch) == {batch[0].message.message_id}
    world.now += timedelta(seconds=PERIOD_SECONDS)
    assert not instance.refused(batch)


def test_a_refused_publisher_costs_one_write_of_each_instance_in_a_period(world: World) -> None:
    instance = world.instance()
    world.taken([instance], batches=100, body=LARGE)
    calls = world.counter.calls

    world.taken([instance], batches=100, body=LARGE)

    assert world.counter.calls == calls


@pytest.mark.parametrize(("size", "taken"), [(0, 115), (1, 1_000), (70_000, 1_000)])
def test_an_event_costs_little_only_if_it_is_logged_without_its_payload(world: World, size: int, taken: int) -> None:
    """The message of the largest event that is logged whole is larger than the event, by its attributes."""
    body = "x" * (MAXIMUM_EVENT_BYTES + size)

    assert world.taken([world.instance()], batches=100, body=body) == pytest.approx(taken, abs=10)


def test_an_event_without_its_payload_costs_the_audience_with_which_it_is_logged(world: World) -> None:
    audience = Audience(eligible_authid=frozenset({"x" * 90_000}))
    notes = metadata_text(PublicationMetadata(PublicationId(1), audience=audience))
    batch = [replace(world.published("x" * 200_000), notes=notes) for _ in range(200)]

    assert len(world.instance().refused(batch)) == 200


def test_an_instance_knows_a_bounded_number_of_publishers(world: World) -> None:
    instance = world.instance()

    for number in range(KNOWN_PUBLISHERS + 10):
        instance.refused([world.published("1", publisher=f"user{number}")])

    assert len(instance._uncounted) <= KNOWN_PUBLISHERS
