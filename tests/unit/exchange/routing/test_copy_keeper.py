"""Copies of kept queues: stored before they are sent, and sent only if they are stored."""

import json

from signalbox.exchange.model.bindings import DeclaredName
from signalbox.kept.objects import KeptObject, read_batch
from tests.fakes.kept import MemoryKeptMessages
from tests.unit.exchange.routing.routing_world import World

ALICE, BOB = "q_alice", "q_bob"


def kept_world(*, fifo: str = "") -> tuple[World, MemoryKeptMessages]:
    """Return a world in which what is sent to Alice's queue is kept."""
    world = World()
    world.declare(f"xs{fifo}")
    for queue in (ALICE, BOB):
        world.bind(f"xs{fifo}", "#", queue=f"{queue}{fifo}")
    world.table.kept.add(DeclaredName(f"{ALICE}{fifo}"))
    return world, world.kept


def test_a_batch_of_a_kept_queue_is_one_object_with_the_copies_as_consumers_get_them():
    world, kept = kept_world()
    world.publish("xs", "a", "1", color="red")
    world.publish("xs", "b", "2")

    world.route("xs")

    (key,) = kept.texts
    assert KeptObject.parse(key).queue == ALICE
    found = read_batch(kept.texts[key])
    assert [(one.body, one.attributes) for one in found] == [
        (one.body, one.attributes) for one in world.messages(ALICE)
    ]
    assert {one.message_id for one in found} == {"xs-1", "xs-2"}  # of the publications
    events = [event for event in world.routed[-1].events if event.kind == "kept"]
    assert [(event.message_id, event.source, event.labels) for event in events] == [
        (one.message_id, ALICE, {"object": key}) for one in found
    ]


def test_nothing_is_called_when_no_queue_is_kept():
    world, kept = kept_world()
    world.table.kept.clear()
    world.publish("xs", "a", "1")

    world.route("xs")

    assert (kept.texts, world.bodies(ALICE)) == ({}, ["1"])


def test_a_publication_that_cannot_be_kept_reaches_no_queue_before_it_is():
    world, kept = kept_world()
    world.publish("xs", "a", "1")
    kept.is_failing = True

    routed = world.route("xs")

    assert len(routed.not_done) == 1
    assert (world.bodies(ALICE), world.bodies(BOB)) == ([], [])
    assert "kept" not in {event.kind for event in routed.events}
    kept.is_failing = False
    world.moment += 1000
    world.route("xs")
    assert (world.bodies(ALICE), world.bodies(BOB), len(kept.texts)) == (["1"], ["1"], 1)


def test_keys_are_in_the_order_of_a_fifo_queue():
    world, kept = kept_world(fifo=".fifo")
    for number in range(5):
        world.publish("xs.fifo", "a", str(number))

    world.route("xs.fifo")

    bodies = [one.body for key in sorted(kept.texts) for one in read_batch(kept.texts[key])]
    assert bodies == world.bodies(f"{ALICE}.fifo") == list("01234")
    assert all(json.loads(text)["version"] == 1 for text in kept.texts.values())
