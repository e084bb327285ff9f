"""No message is lost and order holds, for any sequence of sends, starts, stops and kills."""

from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.splitting.control.reconcile import is_at_rest
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from tests.unit.splitting.forwarding.simulated_messages import POISON
from tests.unit.splitting.forwarding.simulation import FIFO, ORIGINALS, STANDARD, Simulation

SESSIONS = {
    "ann": ("red", "steal"),
    "bob": ("red", "steal"),
    "cyd": ("blue", "steal"),
    "eve": ("red", "mirror"),
    "fay": ("any", "exclusive"),
}
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


def play(simulation: Simulation, step: tuple) -> None:  # noqa: C901 - one line for each kind of step
    match step:
        case ("send", original, color, group):
            simulation.send(original, color=color, group=group)
        case ("start", session):
            color, mode = SESSIONS[session]
            simulation.start(session, color=color, mode=mode)
        case ("stop", session):
            simulation.stop(session)
        case ("lose", session):
            simulation.lose_laptop(session)
        case ("control", kill):
            simulation.killed_after(kill, simulation.control)
        case ("begin", original):
            simulation.begin_forwarding(original)
        case ("finish", kill):
            simulation.killed_after(kill, simulation.finish_forwarding)
        case ("consume", consumer, original, crash):
            simulation.consume(consumer, original, crash=crash)
        case ("tick", seconds):
            simulation.tick(seconds)


def get_going(simulation: Simulation, *sessions: str) -> None:
    """Start sessions and wait until messages are forwarded."""
    for session in sessions:
        color, mode = SESSIONS[session]
        simulation.start(session, color=color, mode=mode)
    while simulation.split and not is_at_rest(simulation.split):
        simulation.control()
        simulation.tick(2)


def assert_nothing_lost(simulation: Simulation) -> None:
    """Assert that each message has exactly one owner or is dead; standard queues may duplicate."""
    ends = Counter(key for key, _ in simulation.consumed)
    for key, entry in simulation.sent.items():
        assert ends[key] + (key in simulation.dead) >= 1, f"message {key} is lost"
        if entry.message_id.startswith(FIFO):
            assert ends[key] <= 1, f"message {key} was consumed {ends[key]} times"


def assert_as_before(simulation: Simulation) -> None:
    assert set(simulation.queues) == set(ORIGINALS)
    assert simulation.reads == {name: name for name in ORIGINALS}
    assert simulation.forwarders == {}
    assert simulation.split is None


def assert_order(simulation: Simulation) -> None:
    """Assert that a consumer receives the messages of a group in the order of sending.

    A message may be late only if a session that has ended since held it. Only messages that were never with that
    session, and overtook it before its return, may then precede it.
    """
    for consumer in {consumer for _, consumer in simulation.consumed}:
        keys = [
            key
            for key, one in simulation.consumed
            if one == consumer and simulation.sent[key].message_id.startswith(FIFO)
        ]
        for place, late in enumerate(keys):
            for early in keys[:place]:
                if early > late and simulation.sent[early].group == simulation.sent[late].group:
                    assert _may_be_late(simulation, late, early), f"{consumer} got {early} before {late}"


def _may_be_late(simulation: Simulation, late: int, early: int) -> bool:
    visited = {key: {one.queue for one in simulation.arrivals if one.key == key} for key in (late, early)}
    last = [one for one in simulation.arrivals if one.key == early][-1:]
    if not last:
        return False
    for queue in visited[late] - visited[early]:
        if queue in simulation.first_return and (
            last[0].how == "return" or last[0].number < simulation.first_return[queue]
        ):
            return True
    return False


@given(st.lists(steps, max_size=60), st.lists(st.sampled_from(sorted(SESSIONS)), max_size=3, unique=True))
def test_no_message_is_lost_and_order_holds(schedule: list[tuple], going: list[str]) -> None:
    simulation = Simulation()
    get_going(simulation, *going)

    for step in schedule:
        play(simulation, step)
    simulation.run_to_the_end(iter(SESSIONS))

    assert_nothing_lost(simulation)
    assert_order(simulation)
    assert_as_before(simulation)


def live_through(simulation: Simulation, random: Random, *, steps: int) -> None:  # noqa: C901 - as above
    """Users start and stop sessions, messages are sent, and each function may be killed at each of its steps."""
    simulation.chance, simulation.risk = random, random.choice([0, 0.02, 0.1])
    going = random.sample(sorted(SESSIONS), 2)
    for _ in range(steps):
        session, original = random.choice(going), random.choice([FIFO, FIFO, STANDARD])
        match random.choices(range(7), [8, 8, 8, 2, 4, 0.5, 0.2])[0]:
            case 0:
                for _ in range(random.randint(1, 4)):
                    simulation.send(original, color=random.choice(["red", "blue", "green"]), group=random.choice("ggh"))
            case 1:
                simulation.tick(random.choice([1, 1, 2, 5]))
            case 2:
                simulation.killed_after(None, simulation.control)
            case 3:
                simulation.begin_forwarding(original)
            case 4:
                simulation.finish_forwarding()
            case 5:
                play(simulation, (random.choice(["start", "start", "stop"]), session))
            case 6:
                simulation.lose_laptop(session)
        for consumer in ("deployed", session):
            simulation.consume(consumer, original, crash=random.random() < simulation.risk)


@given(st.integers(0, 2**32))
def test_functions_killed_at_random_lose_nothing_double_nothing_and_keep_order(seed: int) -> None:
    simulation, random = Simulation(), Random(seed)  # noqa: S311
    get_going(simulation, *random.sample(sorted(SESSIONS), 2))

    live_through(simulation, random, steps=150)
    simulation.risk /= 4
    simulation.run_to_the_end(iter(SESSIONS))

    assert_nothing_lost(simulation)
    assert_order(simulation)
    assert_as_before(simulation)


def is_lossless(seed: int) -> bool:
    """Return whether a life by this seed loses nothing, doubles nothing and keeps the order."""
    simulation, random = Simulation(), Random(seed)  # noqa: S311
    get_going(simulation, *random.sample(sorted(SESSIONS), 2))
    live_through(simulation, random, steps=150)
    simulation.risk /= 4
    try:
        simulation.run_to_the_end(iter(SESSIONS))
        assert_nothing_lost(simulation)
        assert_order(simulation)
    except AssertionError:
        return False
    return True


def test_messages_are_lost_if_a_queue_is_deleted_as_unused_without_a_record_of_its_uses(monkeypatch):
    """The counters alone do not show that a queue was never used."""
    monkeypatch.setattr(UseRecorder, "is_open", lambda _recorder, _name: True)

    assert not all(map(is_lossless, range(20)))


@given(st.integers(0, 2**32), st.sampled_from([0, 5]))
def test_a_drain_time_out_returns_what_the_target_left_to_the_original(seed: int, seconds: int) -> None:
    simulation, random = Simulation(drain_timeout=timedelta(seconds=seconds)), Random(seed)  # noqa: S311
    get_going(simulation, "ann")

    live_through(simulation, random, steps=60)
    simulation.risk /= 4
    for session in SESSIONS:
        simulation.stop(session)
    for _ in range(100):  # the target is asleep until it reads the originals again
        simulation.tick(1)
        simulation.killed_after(None, simulation.control)
    simulation.run_to_the_end(iter(()))

    assert_nothing_lost(simulation)
    assert_as_before(simulation)


@given(st.lists(st.tuples(st.sampled_from(["start", "stop"]), st.sampled_from(sorted(SESSIONS))), max_size=20))
def test_the_target_is_switched_once_for_any_number_of_sessions(schedule: list[tuple]) -> None:
    simulation = Simulation()
    get_going(simulation, "ann")

    for step in schedule:
        if step != ("stop", "ann"):
            play(simulation, step)
            simulation.control()
            simulation.tick(12)
    simulation.run_to_the_end(iter(SESSIONS))

    assert (simulation.splits, simulation.switches, simulation.switches_back) == (1, 1, 1)
    assert_as_before(simulation)


@pytest.mark.parametrize("original", ORIGINALS)
def test_two_sessions_and_the_deployed_consumer_receive_their_own_messages(original) -> None:
    simulation = Simulation()
    get_going(simulation, "ann", "cyd", "eve")
    red, blue, green = (simulation.send(original, color=color) for color in ("red", "blue", "green"))

    simulation.begin_forwarding(original)
    simulation.finish_forwarding()
    for consumer in ("ann", "cyd", "eve", "deployed"):
        simulation.consume(consumer, original)

    assert sorted(simulation.consumed) == [(red, "ann"), (blue, "cyd"), (green, "deployed")]
    assert simulation.copies == [(red, "eve")]


@pytest.mark.parametrize("original", ORIGINALS)
def test_an_exclusive_session_receives_every_message_and_the_deployed_consumer_none_until_it_ends(original) -> None:
    simulation = Simulation()
    get_going(simulation, "fay", "ann", "eve")
    sent = [simulation.send(original, color=color) for color in ("red", "blue", "green")]

    simulation.begin_forwarding(original)
    simulation.finish_forwarding()
    for _ in sent:
        for consumer in ("deployed", "fay", "eve"):
            simulation.consume(consumer, original)
    during, unread = list(simulation.consumed), simulation.send(original, color="red")
    simulation.begin_forwarding(original)
    simulation.finish_forwarding()
    later = simulation.send(original, color="blue")
    simulation.run_to_the_end(iter(SESSIONS))

    assert simulation.split is None
    assert during == [(key, "fay") for key in sent]
    assert simulation.copies[:1] == [(sent[0], "eve")]
    assert sorted(simulation.consumed[len(during) :]) == [(unread, "deployed"), (later, "deployed")]
    assert_as_before(simulation)


@pytest.mark.parametrize("first", ["ann", "fay"])
def test_an_exclusive_session_shares_its_queues_with_no_session_that_takes_messages(first) -> None:
    simulation = Simulation()

    get_going(simulation, first, "eve", *({"ann", "fay"} - {first}))

    assert [one.session_id for one in simulation.split.sessions] == [first, "eve"]


@pytest.mark.parametrize("original", ORIGINALS)
def test_unconsumed_messages_go_to_the_next_match_and_then_to_the_deployed_consumer(original) -> None:
    simulation = Simulation()
    get_going(simulation, "ann", "bob")
    first = simulation.send(original, color="red")
    simulation.begin_forwarding(original)
    simulation.finish_forwarding()
    simulation.consume("ann", original, crash=True)  # in flight when the session ends

    simulation.stop("ann")
    for _ in range(60):
        simulation.control()
        simulation.tick(2)
    simulation.consume("bob", original)

    assert simulation.consumed == [(first, "bob")]
    assert simulation.split.session("ann") is None


@pytest.mark.parametrize("original", [STANDARD, FIFO])
def test_a_lost_laptop_ends_its_session(original) -> None:
    simulation = Simulation()
    get_going(simulation, "ann")
    simulation.send(original, color="red")
    simulation.begin_forwarding(original)
    simulation.finish_forwarding()

    simulation.lose_laptop("ann")
    simulation.run_to_the_end(iter(()))

    assert [consumer for _, consumer in simulation.consumed] == ["deployed"]
    assert_as_before(simulation)
