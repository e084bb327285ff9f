"""A function that is killed between any two of its calls processes the message again, with the same result."""

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from signalbox.live.model.state import ConnectionId, FrameId, Lost, RightsChanged
from signalbox.live.ports import SessionPorts
from signalbox.live.session.inbox import frame_body
from signalbox.live.session.inbox_processor import Arrival, InboxProcessor, OutOfTime
from signalbox.live.wamp.batches import RECORD_SEPARATOR, batch
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import UserName
from tests.fakes.exchange import Countdown, Killed, Killing
from tests.fakes.live import REALM, MemoryLive
from tests.unit.live.session.conversation import FIRST, Client, published

STORED = ("sessions", "realm_sessions", "accounts", "log")
OTHERS = ("inbox", "outboxes", "timers", "sender", "overview_calls")
Step = Callable[[Client], object]


def call(client: Client, procedure: str, *arguments: object) -> object:
    return client.say(48, 9, {}, procedure, list(arguments))


def forget_rights(client: Client) -> object:
    client.world.accounts.grants[REALM, UserName("subscriber")] = []
    return client.notify(RightsChanged())


STEPS: dict[str, Step] = {
    "subscribing": lambda client: client.say(32, 1, {"get_retained": True}, "trial.b"),
    "unsubscribing": lambda client: client.say(34, 1, client_subscription(client)),
    "sending several messages at once": lambda client: client.say_all(
        [32, 1, {"get_retained": True}, "trial.b"],
        [16, 2, {"acknowledge": True}, "trial.a", [1]],
        [34, 3, client_subscription(client)],
    ),
    "publishing": lambda client: client.say(16, 1, {"acknowledge": True}, "trial.a", [1]),
    "calling": lambda client: call(client, "wamp.subscription.get_events", client_subscription(client)),
    "calling another function's procedure": lambda client: call(client, "signalbox.topics"),
    "leaving": lambda client: client.say(6, {}, "wamp.close.close_realm"),
    "being lost": lambda client: client.notify(Lost()),
    "violating the protocol": lambda client: client.say(2, 1, {}),
    "losing rights": forget_rights,
}


def client_subscription(client: Client) -> int:
    found = client.world.sessions.find(client.connection)
    assert found
    return next(iter(found.session.subscriptions), 0)


def state_after(step: Step, countdown: Countdown | None) -> tuple[Any, bool]:
    """Return the visible results of a step, and whether its function was killed."""
    world = MemoryLive()
    admin = Client(world, ConnectionId("admin")).open().join("admin")
    admin.say(32, 1, {"match": "prefix"}, "wamp.")
    client = Client(world).open(is_batched=True).join()
    client.say(32, 1, {}, "trial.a")
    if not countdown:
        step(client)
        return seen(world, client), False
    until_done(client, step, countdown)
    return seen(world, client), countdown.left < 0


def killing(ports: SessionPorts, countdown: Countdown) -> SessionPorts:
    """Return ports with which a function is killed before one of its calls."""
    store = replace(ports.store, **{name: Killing(getattr(ports.store, name), countdown) for name in STORED})
    subscribers = replace(ports.subscribers, stored=Killing(ports.subscribers.stored, countdown))
    return replace(
        ports,
        store=store,
        subscribers=subscribers,
        **{name: Killing(getattr(ports, name), countdown) for name in OTHERS},
    )


def seen(world: MemoryLive, client: Client) -> Any:
    items = [(type(item), item.item_id) for item in world.outboxes.items[client.connection]]
    rows = set(world.subscribers.rows[REALM])
    sent = [(one.topic, one.body) for one in published(world)]
    passed_on = list(world.overview_calls.calls.values())
    return items, rows, sorted(map(str, sent)), passed_on, world.realm_sessions.every(REALM), world.sessions.closed


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_killed_step_that_is_repeated_has_the_effects_of_one(step: Step) -> None:
    undisturbed, _ = state_after(step, None)

    for calls in itertools.count():
        found, was_killed = state_after(step, Countdown(calls))
        assert found == undisturbed, f"killed after {calls} calls"
        if not was_killed:
            break

    assert calls > 2


ROW = [
    [32, 1, {"get_retained": True}, "trial.b"],
    [16, 2, {"acknowledge": True}, "trial.a", [1]],
    [34, 3, TopicPattern.parse("trial.a").subscription_id],
    [48, 4, {}, "wamp.subscription.get_events", [TopicPattern.parse("trial.b").subscription_id]],
    [16, 5, {}, "closed", [1]],
    [6, {}, "wamp.close.close_realm"],
    [16, 6, {}, "trial.a", [1]],
]


def processed_in_a_batch(countdown: Countdown | None, *, one_by_one: bool, knows_done: bool) -> tuple[Any, bool]:
    """Return the visible results of a batch of which some or all frames are received again, one by one or together."""
    world = MemoryLive()
    admin = Client(world, ConnectionId("admin")).open().join("admin")
    admin.say(32, 1, {"match": "prefix"}, "wamp.")
    client = Client(world).open().join()
    client.say(32, 1, {}, "trial.a")
    arrivals = [
        Arrival(FrameId(f"row-{number}"), client.connection, frame_body(json.dumps(message)), world.moment)
        for number, message in enumerate(ROW)
    ]
    done: set[FrameId] = set()
    if countdown:
        with suppress(Killed):
            killed = world.processor(client.connection, killing(world.ports(), countdown))
            done.update(killed.process(arrivals))
    left = [arrival for arrival in arrivals if not knows_done or arrival.frame not in done]
    for some in [[arrival] for arrival in left] if one_by_one else [left]:
        assert len(list(world.processor(client.connection).process(some))) == len(some)
    return seen(world, client), countdown is not None and countdown.left < 0


@pytest.mark.parametrize(("one_by_one", "knows_done"), list(itertools.product([True, False], repeat=2)))
def test_a_batch_may_be_received_again_in_any_split(*, one_by_one: bool, knows_done: bool) -> None:
    undisturbed, _ = processed_in_a_batch(None, one_by_one=True, knows_done=True)

    for calls in itertools.count():
        found, was_killed = processed_in_a_batch(Countdown(calls), one_by_one=one_by_one, knows_done=knows_done)
        assert found == undisturbed, f"killed after {calls} calls"
        if not was_killed:
            break

    assert calls > 20


@pytest.mark.parametrize("is_batched", [True, False])
def test_an_invocation_without_time_does_one_message_and_the_next_one_continues(*, is_batched: bool) -> None:
    undisturbed, one = processed_by_invocations(is_batched=is_batched, is_late=False)
    found, several = processed_by_invocations(is_batched=is_batched, is_late=True)

    assert found == undisturbed
    assert (one, several) == (1, len(ROW))


def processed_by_invocations(*, is_batched: bool, is_late: bool) -> tuple[Any, int]:
    """Return the visible results of a batch of frames, or of one frame with their messages, and the invocations."""
    world = MemoryLive()
    client = Client(world).open(is_batched=is_batched).join()
    client.say(32, 1, {}, "trial.a")
    texts = list(map(json.dumps, ROW))
    bodies = map(frame_body, [batch(texts, RECORD_SEPARATOR)] if is_batched else texts)
    left = [Arrival(FrameId(str(number)), FIRST, body, world.moment) for number, body in enumerate(bodies)]
    for number in range(1, len(ROW) + 1):
        with suppress(OutOfTime):
            for done in InboxProcessor(world.ports(), world.tokens, FIRST, lambda: is_late).process(list(left)):
                assert left.pop(0).frame == done
        if not left:
            return seen(world, client), number
    raise AssertionError(left)


def until_done(client: Client, step: Step, countdown: Countdown) -> None:
    """Run a step in a function that is killed before one of its calls, and then in one that is not."""
    client.ports = killing(client.world.ports(), countdown)
    with suppress(Killed):
        step(client)
    client.ports = None
    client.frames -= 1
    step(client)
