"""The service of proxy polls."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from signalbox.rendezvous.model.held_polls import HeldPoll, ranked_polls
from signalbox.rendezvous.model.states import ClientId, OfferState
from signalbox.rendezvous.rules.matching import RESERVATION_TIME
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.rendezvous import START
from tests.unit.rendezvous.rules.services import CLIENT, Killed, World, delivery, proxy


def test_a_poll_without_an_offer_is_held_for_the_hold_time() -> None:
    world = World()

    result = world.poll(proxy())

    assert result.match is None
    assert result.was_held
    assert world.clock.now() - START == pytest.approx(timedelta(seconds=10), abs=timedelta(seconds=0.3))
    assert world.held_polls.slots == {}


def test_a_held_poll_gets_an_offer_that_arrives_while_it_waits() -> None:
    world = World()
    world.clock.at(4.05, lambda: world.receive(delivery()))

    result = world.poll(proxy())

    assert result.match is not None
    assert result.match.client_id == CLIENT
    assert world.clock.now() - START < timedelta(seconds=4.5)


def test_a_parked_offer_goes_to_the_next_compatible_poll_at_once() -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery(nat="restricted"))

    unfitting = world.impatient.poll(proxy("p1", nat=Nat.RESTRICTED))
    fitting = world.poll(proxy("p2", nat=Nat.UNRESTRICTED))

    assert unfitting.match is None
    assert fitting.match is not None
    assert not fitting.was_held


def test_the_oldest_compatible_offer_goes_first() -> None:
    world = World()
    world.expect_proxies()
    for name in ("a", "b"):
        world.receive(replace(delivery(), client_id=ClientId(name), message_id=name))
        world.wait(1)

    match = world.poll(proxy()).match

    assert match is not None
    assert match.client_id == "a"


def reserve(world: World) -> bool:
    until = world.clock.now() + RESERVATION_TIME
    return world.held_polls.reserve(world.held_polls.slots[0], client_id=CLIENT, until=until)


def held(world: World, sid: str, *, nat: Nat, clients: int, slot: int) -> HeldPoll:
    poll = HeldPoll(
        slot=slot,
        sid=sid,
        nat=nat,
        proxy_type="webext",
        clients=clients,
        since=world.clock.now(),
        until=world.clock.now() + timedelta(seconds=10),
    )
    assert world.held_polls.acquire(poll, now=world.clock.now())
    return poll


@pytest.mark.parametrize(
    ("client", "chosen"),
    [("unrestricted", "restricted-few"), ("restricted", "unrestricted"), ("unknown", "unrestricted")],
)
def test_held_polls_are_reserved_in_upstreams_order(client: str, chosen: str) -> None:
    """Sources: broker/ipc.go (restricted proxies first), broker/snowflake-heap.go (fewest clients first)."""
    world = World()
    held(world, "unrestricted", nat=Nat.UNRESTRICTED, clients=0, slot=0)
    held(world, "restricted-many", nat=Nat.RESTRICTED, clients=16, slot=1)
    held(world, "restricted-few", nat=Nat.UNKNOWN, clients=8, slot=2)

    world.receive(delivery(nat=client))

    assert world.offers.records[CLIENT].reserved_for == chosen
    assert [p.sid for p in world.held_polls.slots.values() if p.offer == CLIENT] == [chosen]


def test_concurrent_clients_prefer_different_polls_among_equal_ones() -> None:
    world = World()
    polls = [held(world, f"p{n}", nat=Nat.UNRESTRICTED, clients=0, slot=n) for n in range(20)]

    first = [
        ranked_polls(polls, client_nat=Nat.RESTRICTED, client_id=ClientId(f"c{n}"), now=world.clock.now())[0].sid
        for n in range(20)
    ]

    assert len(set(first)) > 8


def test_concurrent_offers_share_one_read_and_reserve_different_polls() -> None:
    world = World()
    reads: list[list[HeldPoll]] = []
    poll_reserver = world.poll_reserver
    read = world.held_polls.held
    for slot in range(3):
        held(world, f"p{slot}", nat=Nat.UNRESTRICTED, clients=0, slot=slot)

    def counted(*, now: datetime) -> list[HeldPoll]:
        reads.append(read(now=now))
        return reads[-1]

    world.held_polls.held = counted
    now = world.clock.now()
    reserved = [poll_reserver.reserve(ClientId(f"c{n}"), nat=Nat.RESTRICTED, now=now).reserved_for for n in range(3)]

    assert sorted(map(str, reserved)) == ["p0", "p1", "p2"]
    assert len(reads) == 1


def test_a_poll_that_arrived_after_the_shared_read_is_found() -> None:
    world = World()
    world.expect_proxies()
    poll_reserver = world.poll_reserver
    assert poll_reserver.reserve(ClientId("early"), nat=Nat.RESTRICTED, now=world.clock.now()).reserved_for is None
    held(world, "new", nat=Nat.UNRESTRICTED, clients=0, slot=0)
    world.wait(0.01)

    assert poll_reserver.reserve(CLIENT, nat=Nat.RESTRICTED, now=world.clock.now()).reserved_for == "new"


def test_an_offer_reserved_for_a_held_poll_is_not_claimed_by_another_poll() -> None:
    world = World()
    held(world, "waiting", nat=Nat.RESTRICTED, clients=0, slot=0)
    world.receive(delivery())

    passing = world.impatient.poll(proxy("passing"))
    world.wait(3)
    world.receive(delivery(handle="h2"))  # the message is delivered again: the function of the held poll was killed
    later = world.impatient.poll(proxy("later"))

    assert passing.match is None
    assert later.match is not None


def test_an_offer_whose_held_poll_was_killed_is_reserved_for_another_one() -> None:
    world = World()
    held(world, "killed", nat=Nat.RESTRICTED, clients=0, slot=1)
    world.receive(delivery())
    assert world.offers.records[CLIENT].reserved_for == "killed"
    world.clock.at(3, lambda: world.receive(delivery(handle="h2")))

    result = world.poll(proxy())

    assert result.match is not None
    assert world.clock.now() - START < timedelta(seconds=3.3)


def test_an_offer_whose_proxy_was_silent_goes_to_another_one_when_its_match_ends() -> None:
    world = World()
    held(world, "other", nat=Nat.RESTRICTED, clients=8, slot=1)
    world.clock.at(1, lambda: world.receive(delivery()))
    world.poll(proxy())
    world.clock.at(4, lambda: world.receive(delivery(handle="h2")))

    early = world.impatient.poll(proxy("early"))
    world.wait(5)

    assert early.match is None
    assert world.impatient.poll(proxy("later")).match


def test_the_slot_of_a_poll_with_a_reserved_offer_is_not_released() -> None:
    """It becomes free by itself a second after the reservation."""
    world = World()
    world.clock.at(1.1, lambda: world.receive(delivery()))
    world.held_polls.release = lambda poll: pytest.fail("an unnecessary call")

    assert world.poll(proxy()).match is not None

    world.wait(1)
    assert world.held_polls.held(now=world.clock.now()) == []


def test_a_poll_that_fails_releases_its_slot() -> None:
    world = World()
    world.fuse.calls_left = 2  # it records the poll and takes a slot

    with pytest.raises(Killed):
        world.poll(proxy())

    assert world.held_polls.slots == {}


def test_a_held_poll_that_left_is_skipped() -> None:
    world = World()
    gone = held(world, "gone", nat=Nat.RESTRICTED, clients=0, slot=0)
    held(world, "there", nat=Nat.RESTRICTED, clients=8, slot=1)
    listed = world.held_polls.held(now=world.clock.now())
    world.held_polls.release(gone)
    world.held_polls.held = lambda now: listed

    world.receive(delivery())

    assert world.offers.records[CLIENT].reserved_for == "there"


def test_a_reserved_offer_that_another_proxy_claimed_frees_the_held_poll_for_the_next() -> None:
    world = World()
    other = ClientId("other")

    def reserve_and_close() -> None:
        world.receive(replace(delivery(), client_id=other, message_id="m0"))
        world.offers.close(other, state=OfferState.EXPIRED, reply="", leased_until=world.clock.now())

    world.clock.at(2.1, reserve_and_close)
    world.clock.at(5.1, lambda: world.receive(delivery()))

    result = world.poll(proxy())

    assert result.match is not None
    assert result.match.client_id == CLIENT


def test_an_offer_that_is_reserved_before_it_is_stored_is_claimed_once_stored() -> None:
    world = World()
    world.clock.at(1.1, lambda: reserve(world))

    def store() -> None:
        world.held_polls.held = lambda now: []
        world.receive(delivery())

    world.clock.at(1.3, store)

    result = world.poll(proxy())

    assert result.match is not None
    assert world.clock.now() - START < timedelta(seconds=2.5)


def test_an_offer_that_is_stored_right_after_its_reservation_does_not_wait_for_the_next_read() -> None:
    world = World()
    world.expect_proxies()
    world.clock.at(1.2, lambda: reserve(world))
    world.clock.at(1.26, lambda: world.receive(delivery()))  # the poll reads its slot at 1.25 s

    result = world.poll(proxy())

    assert result.match is not None
    assert world.clock.now() - START == timedelta(seconds=1.3)


def before_release(world: World, meanwhile: Callable[[], object]) -> None:
    """Call `meanwhile` after a poll's last read, right before it releases its slot."""
    release = world.held_polls.release

    def released(poll: HeldPoll) -> ClientId | None:
        meanwhile()
        return release(poll)

    world.held_polls.release = released


def test_an_offer_that_is_reserved_after_the_last_read_is_claimed() -> None:
    world = World()
    world.expect_proxies()

    def reserve_and_store() -> None:
        reserve(world)
        world.receive(delivery())

    before_release(world, reserve_and_store)

    result = world.poll(proxy())

    assert result.was_held
    assert result.match is not None
    assert result.match.client_id == CLIENT
    assert world.held_polls.slots == {}


@pytest.mark.parametrize(("stored_after", "is_taken"), [(0.1, True), (1.0, False)])
def test_a_poll_that_ends_retries_the_claim_of_an_unstored_offer(stored_after: float, *, is_taken: bool) -> None:
    world = World()
    world.expect_proxies()

    def reserve_before_storing() -> None:
        reserve(world)
        seconds = (world.clock.now() - START).total_seconds() + stored_after
        world.clock.at(seconds, lambda: world.receive(delivery()))

    before_release(world, reserve_before_storing)

    assert (world.poll(proxy()).match is not None) is is_taken


def test_a_poll_that_ends_does_not_wait_for_a_reserved_offer_that_is_closed() -> None:
    world = World()

    def reserve_and_close() -> None:
        reserve(world)
        world.receive(delivery())
        world.offers.close(CLIENT, state=OfferState.EXPIRED, reply="", leased_until=world.clock.now())

    before_release(world, reserve_and_close)

    assert world.poll(proxy()).match is None
    assert world.clock.now() - START < timedelta(seconds=10.2)


def test_as_many_polls_are_held_as_there_are_slots() -> None:
    world = World(policy=replace(World().policy, poll_hold_limit=1))
    held(world, "first", nat=Nat.UNRESTRICTED, clients=0, slot=0)

    result = world.poll(proxy("second"))

    assert result.match is None
    assert not result.was_held
    assert world.clock.now() == START


def test_a_network_that_holds_its_share_of_the_slots_leaves_the_others_free() -> None:
    world = World(policy=replace(World().policy, poll_hold_limit=5))
    held(world, "stranger", nat=Nat.UNRESTRICTED, clients=0, slot=0)

    assert not world.poll(proxy("second"), network=0).was_held
    assert world.poll(proxy("other"), network=1).was_held


def test_the_slot_of_a_killed_function_is_free_after_its_hold() -> None:
    world = World(policy=replace(World().policy, poll_hold_limit=1))
    held(world, "killed", nat=Nat.UNRESTRICTED, clients=0, slot=0)
    world.wait(10)

    assert world.poll(proxy("next")).was_held


def test_a_silent_proxys_offer_goes_to_another_while_patience_lasts() -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery())
    assert world.impatient.poll(proxy("silent")).match
    assert world.impatient.poll(proxy("too early")).match is None
    world.wait(5)

    second = world.impatient.poll(proxy("second"))
    answered = world.answer(proxy("second"))

    assert second.match is not None
    assert second.match.matches == 2
    assert answered
    assert not world.answer(proxy("silent"))
    assert len(world.replies) == 1


def test_a_late_answer_is_accepted_while_no_other_proxy_has_the_offer() -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery())
    world.poll(proxy())
    world.wait(12)

    assert world.answer(proxy())


def test_an_offer_past_its_patience_is_not_matched() -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery())
    world.wait(30)

    assert world.impatient.poll(proxy()).match is None
    assert world.offers.records[CLIENT].state is OfferState.PENDING


def test_an_abandoned_offer_is_closed_by_the_next_poll_with_a_stored_reply() -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery())
    world.wait(40)

    assert world.impatient.poll(proxy()).match is None
    assert world.offers.records[CLIENT].state is OfferState.EXPIRED
    world.receive(delivery(handle="late"))
    assert world.replies == ['{"error":"timed out waiting for answer!"}']


def test_if_another_proxy_is_faster_the_next_offer_is_claimed() -> None:
    world = World()
    world.expect_proxies()
    for name in ("a", "b"):
        world.receive(replace(delivery(), client_id=ClientId(name), message_id=name))
    listed = world.offers.claimable(["any"], now=world.clock.now())
    world.impatient.poll(proxy("quicker"))
    world.offers.claimable = lambda pools, now: listed

    match = world.poll(proxy("slower")).match

    assert match is not None
    assert match.client_id == "b"
