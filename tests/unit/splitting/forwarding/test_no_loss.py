"""Whatever is sent, started, stopped and killed in whatever order: nothing is lost, and order holds."""

from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signalbox.splitting.control.reconcile import is_at_rest
from tests.unit.splitting.forwarding.simulated_messages import POISON
from tests.unit.splitting.forwarding.simulation import FIFO, ORIGINALS, STANDARD, Simulation

SESSIONS = {"ann": ("red", "steal"), "bob": ("red", "steal"), "cyd": ("blue", "steal"), "eve": ("red", "mirror")}
kills = st.one_of(st.none(), st.integers(0, 6))
queues = st.sampled_from(ORIGINALS)
consumers = st.sampled_from(["deployed", *SESSIONS])
colors = st.sampled_from(["red", "blue", "green", "red", POISON])

steps = st.one_of(
    st.tuples(st.just("send"), queues, colors, st.sampled_from(["g", "h"])),
    st.tuples(st.just("send"), st.just(FIFO), st.just("red"), st.just("g")),
    st.tuples(st.just("start"), st.sampled_from(sorted(SESSIONS))),
    st.tuples(st.just("stop"), st.sampled_from(sorted(SESSIONS))),
    st.tuples(st.just("lose"), st.sampled_from(sorted(SESSIONS))),
    st.tuples(st.just("control"), kills),
    st.tuples(st.just("control"), st.none()),
    st.tuples(st.just("begin"), queues),
    st.tuples(st.just("finish"), kills),
    st.tuples(st.just("consume"), consumers, queues, st.booleans()),
    st.tuples(st.just("tick"), st.sampled_from([1, 3, 12, 40])),
)


def play(world: Simulation, step: tuple) -> None:  # noqa: C901 - one line for each kind of step
    match step:
        case ("send", original, color, group):
            world.send(original, color=color, group=group)
        case ("start", session):
            color, mode = SESSIONS[session]
            world.start(session, color=color, mode=mode)
        case ("stop", session):
            world.stop(session)
        case ("lose", session):
            world.lose_laptop(session)
        case ("control", kill):
            world.killed_after(kill, world.control)
        case ("begin", original):
            world.begin_forwarding(original)
        case ("finish", kill):
            world.killed_after(kill, world.finish_forwarding)
        case ("consume", consumer, original, crash):
            world.consume(consumer, original, crash=crash)
        case ("tick", seconds):
            world.tick(seconds)


def get_going(world: Simulation, *sessions: str) -> None:
    """Start sessions and wait until messages are forwarded."""
    for session in sessions:
        color, mode = SESSIONS[session]
        world.start(session, color=color, mode=mode)
    while world.split and not is_at_rest(world.split):
        world.control()
        world.tick(2)


def assert_nothing_lost(world: Simulation) -> None:
    """Each message ended with exactly one owner, or dead; a standard queue's perhaps more than once."""
    ends = Counter(key for key, _ in world.consumed)
    for key, entry in world.sent.items():
        assert ends[key] + (key in world.dead) >= 1, f"message {key} is lost"
        if entry.message_id.startswith(FIFO):
            assert ends[key] <= 1, f"message {key} was consumed {ends[key]} times"


def assert_as_before(world: Simulation) -> None:
    assert set(world.queues) == set(ORIGINALS)
    assert world.reads == {name: name for name in ORIGINALS}
    assert world.forwarders == {}
    assert world.split is None


def assert_order(world: Simulation) -> None:
    """In each group, a consumer gets messages in the order in which they were sent.

    A message may come later than its turn only because a session had it, that has ended since; and then only those
    may be before it that were never with this session, and had gone past it before it was taken back.
    """
    for consumer in {consumer for _, consumer in world.consumed}:
        keys = [key for key, one in world.consumed if one == consumer and world.sent[key].message_id.startswith(FIFO)]
        for place, late in enumerate(keys):
            for early in keys[:place]:
                if early > late and world.sent[early].group == world.sent[late].group:
                    assert _may_be_late(world, late, early), f"{consumer} got {early} before {late}"


def _may_be_late(world: Simulation, late: int, early: int) -> bool:
    visited = {key: {one.queue for one in world.arrivals if one.key == key} for key in (late, early)}
    last = [one for one in world.arrivals if one.key == early][-1:]
    if not last:
        return False
    for queue in visited[late] - visited[early]:
        if queue in world.first_return and (last[0].how == "return" or last[0].number < world.first_return[queue]):
            return True
    return False


@settings(max_examples=150)
@given(st.lists(steps, max_size=60), st.lists(st.sampled_from(sorted(SESSIONS)), max_size=3, unique=True))
def test_no_message_is_lost_and_order_holds(schedule: list[tuple], going: list[str]) -> None:
    world = Simulation()
    get_going(world, *going)

    for step in schedule:
        play(world, step)
    world.run_to_the_end(iter(SESSIONS))

    assert_nothing_lost(world)
    assert_order(world)
    assert_as_before(world)


def live_through(world: Simulation, random: Random, *, steps: int) -> None:  # noqa: C901 - as above
    """People come and go, messages are sent, and each function may be killed at each of its steps."""
    world.chance, world.risk = random, random.choice([0, 0.02, 0.1])
    going = random.sample(sorted(SESSIONS), 2)
    for _ in range(steps):
        session, original = random.choice(going), random.choice([FIFO, FIFO, STANDARD])
        match random.choices(range(7), [8, 8, 8, 2, 4, 0.5, 0.2])[0]:
            case 0:
                for _ in range(random.randint(1, 4)):
                    world.send(original, color=random.choice(["red", "blue", "green"]), group=random.choice("ggh"))
            case 1:
                world.tick(random.choice([1, 1, 2, 5]))
            case 2:
                world.killed_after(None, world.control)
            case 3:
                world.begin_forwarding(original)
            case 4:
                world.finish_forwarding()
            case 5:
                play(world, (random.choice(["start", "start", "stop"]), session))
            case 6:
                world.lose_laptop(session)
        for consumer in ("deployed", session):
            world.consume(consumer, original, crash=random.random() < world.risk)


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_functions_killed_at_random_lose_nothing_double_nothing_and_keep_order(seed: int) -> None:
    world, random = Simulation(), Random(seed)  # noqa: S311
    get_going(world, *random.sample(sorted(SESSIONS), 2))

    live_through(world, random, steps=150)
    world.risk /= 4
    world.run_to_the_end(iter(SESSIONS))

    assert_nothing_lost(world)
    assert_order(world)
    assert_as_before(world)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([0, 5]))
def test_a_drain_time_out_returns_what_the_target_left_to_the_original(seed: int, seconds: int) -> None:
    world, random = Simulation(drain_timeout=timedelta(seconds=seconds)), Random(seed)  # noqa: S311
    get_going(world, "ann")

    live_through(world, random, steps=60)
    for session in SESSIONS:
        world.stop(session)
    for _ in range(100):  # the target is asleep until it reads the originals again
        world.tick(1)
        world.killed_after(None, world.control)
    world.run_to_the_end(iter(()))

    assert_nothing_lost(world)
    assert_as_before(world)


@given(st.lists(st.tuples(st.sampled_from(["start", "stop"]), st.sampled_from(sorted(SESSIONS))), max_size=20))
def test_the_target_is_switched_once_for_any_number_of_sessions(schedule: list[tuple]) -> None:
    world = Simulation()
    get_going(world, "ann")

    for step in schedule:
        if step != ("stop", "ann"):
            play(world, step)
            world.control()
            world.tick(12)
    world.run_to_the_end(iter(SESSIONS))

    assert (world.splits, world.switches, world.switches_back) == (1, 1, 1)
    assert_as_before(world)


@pytest.mark.parametrize("original", ORIGINALS)
def test_two_people_and_the_deployed_consumer_each_get_what_is_theirs(original) -> None:
    world = Simulation()
    get_going(world, "ann", "cyd", "eve")
    red, blue, green = (world.send(original, color=color) for color in ("red", "blue", "green"))

    world.begin_forwarding(original)
    world.finish_forwarding()
    for consumer in ("ann", "cyd", "eve", "deployed"):
        world.consume(consumer, original)

    assert sorted(world.consumed) == [(red, "ann"), (blue, "cyd"), (green, "deployed")]
    assert world.copies == [(red, "eve")]


@pytest.mark.parametrize("original", ORIGINALS)
def test_what_a_session_leaves_goes_to_the_next_that_matches_it_and_then_to_the_deployed_consumer(original) -> None:
    world = Simulation()
    get_going(world, "ann", "bob")
    first = world.send(original, color="red")
    world.begin_forwarding(original)
    world.finish_forwarding()
    world.consume("ann", original, crash=True)  # in flight when the session ends

    world.stop("ann")
    for _ in range(60):
        world.control()
        world.tick(2)
    world.consume("bob", original)

    assert world.consumed == [(first, "bob")]
    assert world.split.session("ann") is None


@pytest.mark.parametrize("original", [STANDARD, FIFO])
def test_a_lost_laptop_ends_its_session(original) -> None:
    world = Simulation()
    get_going(world, "ann")
    world.send(original, color="red")
    world.begin_forwarding(original)
    world.finish_forwarding()

    world.lose_laptop("ann")
    world.run_to_the_end(iter(()))

    assert [consumer for _, consumer in world.consumed] == ["deployed"]
    assert_as_before(world)
