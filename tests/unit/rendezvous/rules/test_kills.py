"""The times of an offer whose function is killed at any step, and of one that waits; the simulation has the rest."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.rendezvous import START
from tests.unit.rendezvous.rules.services import Killed, World, delivery

VISIBILITY = timedelta(seconds=3)


def deliveries_until_done(world: World, hidden_until: datetime | None) -> int:
    """Redeliver the offer when it is visible, as SQS does until the message is deleted; return how often."""
    for number in range(1, 20):
        world.wait(((hidden_until or world.clock.now() + VISIBILITY) - world.clock.now()).total_seconds())
        result = world.receive(delivery(handle=f"h{number + 1}"))
        if result.done:
            return number
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


@given(calls=st.integers(0, 14), after=st.booleans(), is_first=st.booleans())
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


def test_a_parked_offer_without_an_answer_needs_few_of_its_receives() -> None:
    for patience in (12, 30, 90, 900):
        world = World(policy=replace(World().policy, sqs_patience=timedelta(seconds=patience)))
        world.expect_proxies()
        hidden_until = world.receive(delivery()).hidden_until

        assert deliveries_until_done(world, hidden_until) <= 6
        assert world.clock.now() <= START + timedelta(seconds=patience)
        assert world.replies == ['{"error":"no snowflake proxies currently available"}']
