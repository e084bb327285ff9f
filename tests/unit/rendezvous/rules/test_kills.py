"""A function that is killed at any step loses no offer, and the client gets one reply."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.model.states import OPEN_STATES
from tests.fakes.rendezvous import START
from tests.unit.rendezvous.rules.services import CLIENT, Killed, World, delivery, proxy

VISIBILITY = timedelta(seconds=3)


def receive_until_done(world: World, *, hidden_until: datetime | None = None) -> int:
    """Redeliver the offer after each visibility timeout, as SQS does until the message is deleted.

    Return the number of deliveries. A killed function hides nothing.
    """
    for number in range(2, 20):
        if world.broker_queue.deleted:
            return number - 2
        world.wait(((hidden_until or world.clock.now() + VISIBILITY) - world.clock.now()).total_seconds())
        try:
            result = world.receive(delivery(handle=f"h{number}"))
        except Killed:
            hidden_until = None
            continue
        if result.done:
            return number - 1
        hidden_until = result.hidden_until
    raise AssertionError("the offer is still in flight")


def receive_again_after_a_kill(world: World, *, is_first: bool) -> None:
    """Deliver an offer, and again after the visibility timeout if the function is killed; proxies poll all the time."""
    try:
        world.receive(replace(delivery(), is_first=is_first))
    except Killed:
        world.wait(VISIBILITY.total_seconds())
        world.expect_proxies()
        world.receive(delivery(handle="h2"))


kills = st.integers(0, 14)
moments = st.booleans()


@given(calls=kills, after=moments, is_first=st.booleans())
def test_after_a_kill_the_client_has_its_queue_within_its_five_seconds(
    calls: int, *, after: bool, is_first: bool
) -> None:
    """Source: upstream's client/lib/rendezvous_sqs.go looks for its queue five times, once a second."""
    world = World()
    world.expect_proxies()
    world.fuse.calls_left, world.fuse.after = calls, after

    receive_again_after_a_kill(world, is_first=is_first)

    assert world.client_queues.replies
    assert world.clock.now() < START + timedelta(seconds=5)


@given(calls=kills, after=moments)
def test_an_answer_whose_function_was_killed_is_sent_within_a_check(calls: int, *, after: bool) -> None:
    world = World()
    world.expect_proxies()
    hidden_until = world.receive(delivery()).hidden_until
    world.poll(proxy())
    world.fuse.calls_left, world.fuse.after = calls, after

    try:
        world.answer(proxy())
    except Killed:
        world.fuse.calls_left = None
        if world.offers.records[CLIENT].state in OPEN_STATES:
            world.answer(proxy())
    world.fuse.calls_left = None
    receive_until_done(world, hidden_until=hidden_until)

    assert len(world.replies) == 1
    assert '"answer"' in world.replies[0]
    assert world.clock.now() <= START + timedelta(seconds=10)


def test_a_parked_offer_without_an_answer_needs_few_of_its_receives() -> None:
    for patience in (12, 30, 90, 900):
        world = World(policy=replace(World().policy, sqs_patience=timedelta(seconds=patience)))
        world.expect_proxies()
        world.receive(delivery())

        assert receive_until_done(world) <= 6
        assert world.clock.now() <= START + timedelta(seconds=patience)
        assert world.replies == ['{"error":"no snowflake proxies currently available"}']


@given(calls=kills, after=moments)
def test_a_function_killed_while_an_offer_expires_sends_one_reply(calls: int, *, after: bool) -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery())
    world.wait(30)
    world.fuse.calls_left, world.fuse.after = calls, after

    receive_until_done(world)

    assert world.replies == ['{"error":"no snowflake proxies currently available"}']
