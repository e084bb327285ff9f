"""With any failures, kills and redeliveries, no message is lost or duplicated, and order is kept."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.exchange.messages.copies import read_retry
from signalbox.exchange.messages.properties import DeliveredMessage
from signalbox.messages import Message
from signalbox.queues import QueueName
from tests.unit.exchange.matching.naive_topics import is_match
from tests.unit.exchange.routing.naive_sqs import VISIBILITY
from tests.unit.exchange.routing.routing_world import DEAD, NAMES, ORDERED_RETRIES, RETRIES, Killed, World

PLAIN, LOG = "xs", "xlog.fifo"
KEYS = ["a.b", "a.c", ""]
BINDINGS = [
    (PLAIN, "#", "q_all"),
    (PLAIN, "a.*", "q_a"),
    (PLAIN, "a.b", "q_a"),
    (PLAIN, "a.#", "q_a.fifo"),
    (LOG, "#", "q_all.fifo"),
    (LOG, "a.#", "q_a.fifo"),
    (LOG, "a.*", "q_plain"),
]
QUEUES = sorted({queue for _, _, queue in BINDINGS})
TROUBLE = ["closed", "closed", "deaf", "silent", "half", None, None]
PLACES = [*map(QueueName, QUEUES), *map(QueueName, ("q_a.fifo", "q_all.fifo")), RETRIES, ORDERED_RETRIES]
PLACES += [QueueName("q_a-dlq.fifo"), QueueName("xs-dlq")]
lives = st.one_of(st.none(), st.integers(0, 12))
exchanges = st.sampled_from([PLAIN, LOG, LOG])

steps = st.one_of(
    st.tuples(st.just("publish"), exchanges, st.sampled_from(KEYS)),
    st.tuples(st.just("publish"), st.just(LOG), st.just("a.b")),
    st.tuples(st.just("route"), exchanges, lives, st.integers(0, 1)),
    st.tuples(st.just("retry"), st.booleans(), lives),
    st.tuples(st.just("retry within route"), exchanges, st.integers(0, 12), st.booleans()),
    st.tuples(st.just("route within retry"), exchanges, st.integers(0, 12), st.booleans()),
    st.tuples(st.just("trouble"), st.sampled_from(PLACES), st.sampled_from(TROUBLE)),
    st.tuples(st.just("tick"), st.sampled_from([1, VISIBILITY])),
    st.tuples(st.just("late"), st.booleans()),
)


@dataclass
class Life:
    """A world and all publications in it, by the number in their bodies."""

    world: World
    published: list[tuple[str, str]] = field(default_factory=list)
    uncertain: set[str] = field(default_factory=set)

    @classmethod
    def begin(cls, *, is_forgetful: bool) -> "Life":
        world = World(is_forgetful=is_forgetful, part_copies=1)
        for exchange in (PLAIN, LOG):
            world.declare(exchange)
        for exchange, pattern, queue in BINDINGS:
            world.bind(exchange, pattern, queue=queue)
        return cls(world)

    def play(self, step: tuple) -> None:  # noqa: C901 - one line for each kind of step
        world = self.world
        match step:
            case ("publish", exchange, key):
                world.publish(exchange, key, body=str(len(self.published)))
                self.published.append((exchange, key))
            case ("route", exchange, life, router):
                self._live(life, lambda: world.route(exchange, router=router), router=router)
            case ("retry", is_ordered, life):
                self._live(life, lambda: world.retry(is_ordered=is_ordered))
            case ("retry within route", exchange, moment, is_ordered):
                world.interruption = lambda: world.retry(is_ordered=is_ordered)
                self._live(moment, lambda: world.route(exchange))
            case ("route within retry", exchange, moment, is_ordered):
                world.interruption = lambda: world.route(exchange)
                self._live(moment, lambda: world.retry(is_ordered=is_ordered))
            case ("trouble", place, trouble):
                world.sqs.trouble[place] = trouble
                if trouble in ("silent", "half"):
                    self.uncertain.add(place)
            case ("tick", seconds):
                world.moment += seconds
            case ("late", is_late):
                world.is_late = is_late

    def _live(self, life: int | None, function, *, router: int | None = None) -> None:
        self.world.breath = life
        try:
            function()
        except Killed:
            if router is not None:
                self.world.routers[router] = self.world.router()
        self.world.breath = self.world.interruption = None

    def run_to_the_end(self) -> None:
        world, waiting = self.world, (NAMES.queue(PLAIN), NAMES.queue(LOG), RETRIES, ORDERED_RETRIES)
        world.sqs.trouble = {}
        while any(world.sqs.queues[name].entries for name in waiting):
            world.moment += VISIBILITY
            for exchange in (PLAIN, LOG):
                world.route(exchange)
            for is_ordered in (True, False):
                world.retry(is_ordered=is_ordered)

    def expected(self, number: int) -> set[str]:
        exchange, key = self.published[number]
        return {queue for one, pattern, queue in BINDINGS if one == exchange and is_match(pattern, key)}

    def in_queue(self, queue: str) -> list[Message]:
        return self.world.messages(queue)

    def dead(self, queue: str) -> list[str]:
        name = queue.replace(".fifo", "-dlq.fifo") if queue.endswith(".fifo") else f"{queue}-dlq"
        stage = [message.body for message in self.world.sqs.queues[DEAD].messages()]
        return [message.body for message in self.world.messages(name)] + stage

    def came_again(self) -> set[tuple[str, str]]:
        """Return the bodies, with their queues, that may have been sent twice."""
        queues = self.world.sqs.queues
        again = {
            (one.body, queue)
            for name in (PLAIN, LOG)
            for one in queues[NAMES.queue(name)].received_again
            for queue in QUEUES
        }
        for name in (RETRIES, ORDERED_RETRIES):
            again |= {(one.body, read_retry(one, NAMES).queue) for one in queues[name].received_again}
        return again


def assert_nothing_lost(life: Life) -> None:
    for queue in QUEUES:
        found = {message.body for message in life.in_queue(queue)} | set(life.dead(queue))
        expected = {str(number) for number in range(len(life.published)) if queue in life.expected(number)}
        assert expected <= found, f"{expected - found} never reached {queue}"
        assert {message.body for message in life.in_queue(queue)} <= expected


def assert_nothing_doubled(life: Life) -> None:
    """A copy is duplicated only if the sending function was killed, or SQS did not answer."""
    again = life.came_again()
    uncertain = life.uncertain | ({*QUEUES} if life.uncertain & {RETRIES, ORDERED_RETRIES} else set())
    for queue in QUEUES:
        is_remembering = queue.endswith(".fifo") and not life.world.is_forgetful
        for body, times in Counter(message.body for message in life.in_queue(queue)).items():
            may_be_twice = (body, queue) in again or queue in uncertain
            assert times == 1 or (may_be_twice and not is_remembering), f"{queue} got {body} {times} times"


def assert_order(life: Life) -> None:
    """In each FIFO queue, the first arrivals of a key have ascending numbers.

    A dead-lettered copy may also arrive late: its function was killed before it could record that.
    """
    for queue in (queue for queue in QUEUES if queue.endswith(".fifo")):
        last: dict[str, int] = {}
        seen: set[str] = set()
        for message in life.in_queue(queue):
            found = DeliveredMessage.parse(message)
            if found.sequence is None or message.body in seen or message.body in life.dead(queue):
                continue
            seen.add(message.body)
            assert found.sequence > last.get(found.key, 0), f"{queue} got {found.sequence} of {found.key!r} late"
            last[found.key] = found.sequence


def assert_numbers(life: Life) -> None:
    """The messages of a key are numbered as published, with the same number in all queues."""
    numbers: dict[str, set[int | None]] = {}
    for queue in QUEUES:
        for message in life.in_queue(queue):
            numbers.setdefault(message.body, set()).add(DeliveredMessage.parse(message).sequence)
    for key in KEYS:
        bodies = [str(number) for number, published in enumerate(life.published) if published == (LOG, key)]
        for position, body in enumerate(bodies, start=1):
            assert numbers.get(body, {position}) == {position}
    plain = [str(number) for number, (exchange, _) in enumerate(life.published) if exchange == PLAIN]
    assert all(numbers.get(body, {None}) == {None} for body in plain)


def assert_nothing_left(life: Life) -> None:
    """No detour delays later publications by more than one message."""
    for _ in range(2):
        for key in KEYS:
            life.play(("publish", LOG, key))
        life.run_to_the_end()
    assert all(head.detours == {} for head in life.world.heads.heads.values())


def assert_all(life: Life) -> None:
    life.run_to_the_end()
    assert_nothing_left(life)
    assert_nothing_lost(life)
    assert_nothing_doubled(life)
    assert_order(life)
    assert_numbers(life)


@given(schedule=st.lists(steps, max_size=40), is_forgetful=st.booleans())
def test_no_copy_is_lost_or_doubled_and_order_and_numbers_hold(*, schedule: list[tuple], is_forgetful: bool) -> None:
    life = Life.begin(is_forgetful=is_forgetful)

    for step in schedule:
        life.play(step)

    assert_all(life)


@given(seed=st.integers(0, 2**32), is_forgetful=st.booleans())
@example(seed=123397053, is_forgetful=False)  # killed right after it dead-lettered a copy
def test_functions_killed_at_random_lose_nothing_and_keep_order(*, seed: int, is_forgetful: bool) -> None:
    life, random = Life.begin(is_forgetful=is_forgetful), Random(seed)  # noqa: S311

    for _ in range(120):
        for step in something_happens(random):
            life.play(step)

    assert_all(life)


def something_happens(random: Random) -> list[tuple]:
    exchange, breath = random.choice([PLAIN, LOG, LOG]), random.choice([None, None, random.randint(0, 25)])
    within = random.choice(["retry within route", "route within retry"])
    published = [("publish", exchange, random.choice([*KEYS, "a.b"])) for _ in range(random.randint(1, 4))]
    chances = [
        (8, published),
        (6, [("route", exchange, breath, random.randint(0, 1))]),
        (4, [("retry", random.random() < 0.7, breath)]),
        (2, [(within, LOG, random.randint(0, 20), True)]),
        (1.5, [("trouble", random.choice(PLACES), random.choice(TROUBLE))]),
        (4, [("tick", random.choice([1, 5, VISIBILITY]))]),
    ]
    return random.choices([steps for _, steps in chances], [weight for weight, _ in chances])[0]
