"""Each subscriber sees each publisher in order and each topic in one order, whatever is killed, repeated or closed."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, OrderBy
from signalbox.exchange.routing.ports import Delivery, HeadChange, NumberedPublication
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.exchange.routing.naive_sqs import VISIBILITY
from tests.unit.exchange.routing.routing_world import NAMES, Killed, World
from tests.unit.exchange.routing.test_router_live import Live

LOG = ExchangeName("xlog.fifo")
QUEUE = NAMES.queue(LOG)
CONNECTIONS = frozenset({"c", "d"})


@dataclass
class Connections(Live):
    """A `LiveDelivery` to connections, of which some accept nothing. A function may be killed at each call."""

    closed: Collection[str] = ()
    got: dict[str, list[tuple[str, int]]] = field(default_factory=lambda: {name: [] for name in CONNECTIONS})

    def store_with(
        self, exchange: ExchangeRecord, published: Sequence[NumberedPublication], heads: Sequence[HeadChange]
    ) -> Delivery | None:
        assert self.world is not None
        self.world.burn()
        breath, self.world.breath = self.world.breath, None  # a transaction is not killed halfway
        stored = super().store_with(exchange, published, heads)
        self.world.breath = breath
        self.world.burn()
        return stored

    def deliver(self, published: Sequence[NumberedPublication]) -> Collection[MessageId]:
        assert self.world is not None
        for name in sorted(CONNECTIONS - set(self.closed)):
            self.world.burn()
            self.got[name] += [(one.publication.message.body, one.sequence) for one in published]
        self.world.burn()
        return {one.publication.message.message_id for one in published} if self.closed else set()


@dataclass(frozen=True)
class Step:
    """A call of a router with a batch, which ends, is killed, or is interrupted by a call of the other router."""

    router: int
    number: int
    breath: int | None
    is_interrupted: bool
    closed: frozenset[str]
    seconds: int


STEPS = st.builds(
    Step,
    router=st.integers(0, 1),
    number=st.integers(1, 6),
    breath=st.none() | st.integers(0, 8),
    is_interrupted=st.booleans(),
    closed=st.sampled_from([frozenset(), frozenset(), frozenset("c"), CONNECTIONS]),
    seconds=st.sampled_from([0, 1, VISIBILITY + 1, 3600]),
)
POSTS = st.lists(st.tuples(st.sampled_from(["alice", "bob", "by-topic"]), st.sampled_from(["a", "b"])), max_size=12)


@given(posts=POSTS, steps=st.lists(STEPS, max_size=12), cannot_write=st.booleans())
def test_publishers_and_topics_stay_in_order(
    posts: list[tuple[str, str]], steps: list[Step], *, cannot_write: bool
) -> None:
    world, live = live_world()
    live.cannot_write = cannot_write
    for number, (publisher, key) in enumerate(posts):
        publish(world, publisher, key, number)

    for step in steps:
        take(step, world, live)
        world.moment += step.seconds
    live.closed = ()
    for _ in range(2 * len(posts)):
        world.moment += VISIBILITY + 1
        world.route(LOG)

    assert world.sqs.queues[QUEUE].messages() == []
    for got in live.got.values():
        check_order(list(dict.fromkeys(got)), posts)


def live_world() -> tuple[World, Connections]:
    world = World()
    world.declare(LOG)
    world.table.exchanges[LOG] = replace(world.table.exchanges[LOG], live=LiveSettings())
    live = Connections(world, holds=world.holds)
    world.use(live=live)
    return world, live


def publish(world: World, publisher: str, key: str, number: int) -> None:
    properties = MessageProperties.of_publication(key, f"{publisher} {key} {number}")
    order_by = OrderBy.TOPIC if publisher == "by-topic" else OrderBy.PUBLISHER
    message = properties.published(deduplication_id=str(number), order_by=order_by, sender=publisher)
    world.sqs.queues[QUEUE].send(message)


def take(step: Step, world: World, live: Connections) -> None:
    def interrupt() -> None:
        world.route(LOG, router=1 - step.router)

    live.closed = step.closed
    world.breath, world.interruption = step.breath, interrupt if step.is_interrupted else None
    with suppress(Killed):
        world.route(LOG, router=step.router, number=step.number)
    world.breath = world.interruption = None


def check_order(got: list[tuple[str, int]], posts: list[tuple[str, str]]) -> None:
    """Check the first delivery of each event: each topic by its numbers, and each publisher by its publications."""
    assert len(got) == len(posts)
    found = [(*body.split(), sequence) for body, sequence in got]
    for key in ("a", "b"):
        sequences = [sequence for _, topic, _, sequence in found if topic == key]
        assert sequences == list(range(1, len(sequences) + 1))
    for publisher in ("alice", "bob"):
        numbers = [int(str(number)) for name, _, number, _ in found if name == publisher]
        assert numbers == sorted(numbers)
