"""Copies a second from one publisher for the queues of one user."""

from collections import Counter
from dataclasses import replace

import pytest

from signalbox.exchange.routing.limits import PERIOD_SECONDS, copies_above
from signalbox.queues import QueueName
from tests.fakes.allowances import MemoryAllowanceCounter
from tests.unit.exchange.routing.routing_world import DEAD, World
from tests.unit.exchange.routing.test_refusals import one_copy

QUEUES = [f"q_mallory_{number}" for number in range(20)]


@pytest.fixture
def world() -> World:
    """Return a world with twenty queues of a user, one of another and one of an administrator, and a low limit."""
    made = World()
    made.declare("xs")
    for name in (*QUEUES, "q_alice", "q_team"):
        made.bind("xs", "#", queue=name)
        if name != "q_team":
            made.table.owners[name] = name.split("_")[1]
    made.use(allowance=MemoryAllowanceCounter().instance(100))
    return made


def publish(world: World, number: int = 10, *, sender: str = "mallory") -> None:
    for body in range(number):
        world.publish("xs", "a", body=str(body), sender=sender)
    world.route("xs")


def test_copies_above_the_limit_are_one_dead_letter_of_each_publication_and_hurt_no_other(world) -> None:
    """Their calls would cost the operator 450 USD an hour."""
    world.sqs.calls.clear()

    publish(world)
    publish(world, 3)

    letters = world.messages("q_mallory_0-dlq")
    assert len(letters) == 13
    assert {one.attributes["Reason"].text for one in letters} == {
        "more than 10,000 copies a second from its publisher for the queues of one user: none of these queues gets it"
    }
    assert world.sqs.calls.count(("q_mallory_0-dlq", 10)) == 1
    assert [len(world.bodies(name)) for name in (*QUEUES, "q_alice", "q_team")] == [0] * 20 + [13, 13]
    assert [result.not_done for result in world.routed] == [(), ()]
    events = Counter(event.outcome for result in world.routed for event in result.events)
    assert events == {"delivered": 26, "dead": 13}
    assert {world.counters.of_queue(name)["dead"] for name in QUEUES} == {13}
    assert world.counters.of_exchange("xs")["dead"] == 13 * 20


def test_within_the_limit_nothing_is_omitted_and_each_publisher_and_period_has_its_own(world) -> None:
    publish(world, 5)
    publish(world, 5, sender="alice")
    world.moment += PERIOD_SECONDS
    publish(world, 5)

    assert {len(world.bodies(name)) for name in QUEUES} == {15}


def test_a_role_has_one_limit_however_it_names_its_sessions(world) -> None:
    for session in range(3):
        publish(world, 5, sender=f"AROAMALLORY:{session}")

    assert {len(world.bodies(name)) for name in QUEUES} == {5}


def test_a_message_whose_dead_letter_no_queue_takes_comes_again(world) -> None:
    world.sqs.trouble = {QueueName("q_mallory_0-dlq"): "closed", DEAD: "closed"}

    publish(world, 6)

    assert len(world.routed[0].not_done) == 6


def test_copies_of_a_message_above_the_limit_are_together(world) -> None:
    allowance = MemoryAllowanceCounter().instance(120)
    copies = [replace(one_copy(number), declared_by="a") for number in range(15)]

    assert [len(copies_above(allowance, copies, at=world.now())) for _ in range(9)] == [0] * 8 + [15]
    assert copies_above(allowance, copies, at=world.now()) == [[copy] for copy in copies]
