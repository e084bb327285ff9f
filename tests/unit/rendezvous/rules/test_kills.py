"""A function that is killed at any step loses no offer, and the client gets one reply."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.rules.states import OPEN_STATES
from tests.unit.rendezvous.rules.services import CLIENT, Killed, World, delivery, proxy


def receive_until_done(world: World) -> None:
    """Redeliver the offer after each visibility timeout, as SQS does until the message is deleted."""
    for number in range(2, 6):
        if world.broker_queue.deleted:
            return
        world.wait(30)
        try:
            if world.receive(delivery(handle=f"h{number}")).done:
                return
        except Killed:
            continue
    raise AssertionError("the offer is still in flight")


kills = st.integers(0, 14)
moments = st.booleans()


@given(calls=kills, after=moments, is_first=st.booleans())
def test_a_killed_offer_function_loses_no_offer(calls: int, *, after: bool, is_first: bool) -> None:
    world = World()
    world.expect_proxies()
    world.fuse.calls_left, world.fuse.after = calls, after

    try:
        world.receive(replace(delivery(), is_first=is_first))
    except Killed:
        world.wait(30)
        world.expect_proxies()
        world.receive(delivery(handle="h2"))
    world.fuse.calls_left = None
    if world.impatient.poll(proxy()).match:
        assert world.answer(proxy())
    receive_until_done(world)

    assert len(world.replies) == 1
    assert world.offers.records[CLIENT].state not in OPEN_STATES


@given(calls=kills, after=moments)
def test_a_function_killed_while_it_serves_a_poll_releases_the_offer(calls: int, *, after: bool) -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery())
    world.fuse.calls_left, world.fuse.after = calls, after

    try:
        matched = world.poll(proxy("first")).match is not None
    except Killed:
        matched = False
    world.fuse.calls_left = None
    if not matched:
        world.wait(5)
        assert world.impatient.poll(proxy("second")).match
    assert world.answer(proxy("first" if matched else "second"))
    receive_until_done(world)

    assert len(world.replies) == 1
    assert '"answer"' in world.replies[0]


@given(calls=kills, after=moments)
def test_a_killed_answer_function_loses_no_answer(calls: int, *, after: bool) -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery())
    world.poll(proxy())
    world.fuse.calls_left, world.fuse.after = calls, after

    try:
        world.answer(proxy())
    except Killed:
        world.fuse.calls_left = None
        world.answer(proxy())  # the proxy may try again
    world.fuse.calls_left = None
    receive_until_done(world)

    assert len(world.replies) == 1
    assert '"answer"' in world.replies[0]


@given(calls=kills, after=moments)
def test_a_function_killed_while_an_offer_expires_sends_one_reply(calls: int, *, after: bool) -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery())
    world.wait(30)
    world.fuse.calls_left, world.fuse.after = calls, after

    receive_until_done(world)

    assert world.replies == ['{"error":"no snowflake proxies currently available"}']
