"""The service of proxy polls."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from signalbox.rendezvous.model.pace import LOCAL_GROUP, ProxyGroup, first_pace, waiting_time
from signalbox.rendezvous.model.states import BUSY_RECORDS, ClientId, OfferPool, OfferState, RendezvousRecord
from signalbox.rendezvous.rules.poll_service import CLAIMS
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.rendezvous import PAGE_SIZE, START
from tests.unit.rendezvous.rules.services import CLIENT, World, delivery, parked, proxy

SECOND = timedelta(seconds=1)


def park(world: World, *names: str, nat: str = "unrestricted") -> None:
    for name in names:
        offer = delivery(nat=nat, message_id=name, sent_at=world.clock.now())
        world.receive(replace(offer, client_id=ClientId(name)))


def claimed(world: World, sid: str, *, nat: Nat = Nat.RESTRICTED) -> str | None:
    match = world.poll(proxy(sid, nat=nat)).match
    return match.client_id if match else None


def test_a_poll_without_an_offer_ends_at_once_with_the_time_of_the_next() -> None:
    world = World()

    result = world.poll(proxy())

    assert (result.match, result.interval) == (None, waiting_time(first_pace(START), random=0.5))
    assert world.clock.now() == START


def test_a_parked_offer_goes_to_the_next_compatible_poll() -> None:
    world = World()
    world.expect_proxies()
    world.receive(delivery(nat="restricted"))

    assert claimed(world, "p1", nat=Nat.RESTRICTED) is None
    assert claimed(world, "p2", nat=Nat.UNRESTRICTED) == CLIENT


def test_the_oldest_compatible_offer_goes_first() -> None:
    world = World()
    world.expect_proxies()
    park(world, "a")
    world.wait(2)
    park(world, "b")

    assert claimed(world, "p1") == "a"


def test_concurrent_polls_choose_different_ones_of_the_offers_sent_at_about_the_same_time() -> None:
    world = World()
    world.expect_proxies()
    park(world, *(f"c{n}" for n in range(20)))
    tried: list[str] = []
    world.offers.claim = lambda record, **_: tried.append(record.client_id)

    for number in range(20):
        world.poll(proxy(f"p{number}", nat=Nat.RESTRICTED))

    assert len(set(tried[::CLAIMS])) > 8


def test_a_poll_whose_offers_are_claimed_by_others_tries_a_few_and_ends() -> None:
    world = World()
    world.expect_proxies()
    park(world, "a", "b", "c", "d", "e")
    tried: list[str] = []
    world.offers.claim = lambda record, **_: tried.append(record.client_id)

    assert claimed(world, "p1") is None
    assert len(set(tried)) == CLAIMS == 3


def test_after_the_match_patience_the_offer_goes_to_another_proxy() -> None:
    world = parked()

    assert claimed(world, "silent") == CLIENT
    world.wait(4.9)
    assert claimed(world, "early") is None
    world.wait(0.1)
    assert claimed(world, "second") == CLIENT
    assert world.offers.records[CLIENT].matches == 2
    assert not world.answer(proxy("silent"))
    assert world.answer(proxy("second"))


def test_a_late_answer_is_accepted_as_long_as_no_other_proxy_has_the_offer() -> None:
    world = parked()
    assert claimed(world, "slow") == CLIENT
    world.wait(10)

    assert world.answer(proxy("slow"))
    assert world.offers.records[CLIENT].state is OfferState.ANSWERED


def test_an_offer_past_its_patience_goes_to_no_proxy() -> None:
    world = parked()
    world.wait(30)

    assert claimed(world, "p1") is None


@pytest.mark.parametrize(("waited", "expected"), [(0.2, None), (0.4, CLIENT)])
def test_an_unrestricted_proxy_leaves_new_offers_to_restricted_ones(waited: float, expected: str | None) -> None:
    """Source: broker/ipc.go. Only the other clients cannot use a restricted proxy."""
    world = World()
    world.expect_proxies()
    world.receive(delivery(nat="unrestricted"))
    world.wait(waited)

    assert claimed(world, "p1", nat=Nat.UNRESTRICTED) == expected


def test_without_restricted_proxies_an_unrestricted_one_gets_a_new_offer_at_once() -> None:
    world = World()
    world.expect_proxies(Nat.UNRESTRICTED)
    world.receive(delivery(nat="unrestricted"))

    assert claimed(world, "p1", nat=Nat.UNRESTRICTED) == CLIENT


def test_polls_of_proxies_that_ignore_it_get_no_match_without_a_look_for_an_offer() -> None:
    world = parked()
    world.paces.paces[ProxyGroup.RESTRICTED] = replace(first_pace(START), networks={LOCAL_GROUP: 10**6})
    world.offers.recent = lambda pool, **_: pytest.fail("looked for an offer")

    assert claimed(world, "p1") is None


def test_most_polls_of_a_busy_pool_look_at_its_newest_offers_only() -> None:
    world = World()
    world.expect_proxies()
    park(world, *(f"c{n}" for n in range(BUSY_RECORDS + 1)))
    seen: list[tuple[timedelta, timedelta]] = []
    recent = world.offers.recent

    def noted(pool: OfferPool, *, since: datetime, until: datetime) -> list[RendezvousRecord]:
        seen.append((world.clock.now() - since, world.clock.now() - until))
        return recent(pool, since=since, until=until)

    world.offers.recent = noted
    service = world.poll_service()

    for number in range(2):
        service.serve(proxy(f"p{number}", nat=Nat.RESTRICTED), network=None)
    world.random = 0.05
    service.serve(proxy("p2", nat=Nat.RESTRICTED), network=None)
    world.wait(31)
    for number in range(3, 5):
        service.serve(proxy(f"p{number}", nat=Nat.RESTRICTED), network=None)

    whole = (30 * SECOND, 0 * SECOND)
    assert seen == [whole, (12 * SECOND, 0 * SECOND), (30 * SECOND, 15 * SECOND), whole, whole]


def test_a_claim_says_whether_the_pool_of_its_offer_is_busy() -> None:
    """The match of a busy pool is found by its session, not among the few oldest and newest records."""
    world = World()
    world.expect_proxies()
    claims: list[bool] = []
    claim = world.offers.claim
    world.offers.claim = lambda record, *, is_busy, **more: (
        claims.append(is_busy) or claim(record, is_busy=is_busy, **more)
    )
    park(world, *(f"c{n}" for n in range(BUSY_RECORDS)))
    world.poll(proxy("p1"))
    park(world, "c")

    world.poll(proxy("p2"))

    assert claims == [False, True]


def test_an_offer_that_a_silent_proxy_let_go_is_found_behind_more_newer_records_than_a_poll_reads() -> None:
    world = World()
    world.expect_proxies()
    park(world, "c")
    assert claimed(world, "silent") == "c"
    world.wait(6)
    newer = [f"n{number}" for number in range(PAGE_SIZE)]
    park(world, *newer)
    for name in newer:
        world.offers.close(world.offers.records[ClientId(name)], state=OfferState.EXPIRED, reply="")
    world.wait(4)
    service = world.poll_service()
    assert service.serve(proxy("p1"), network=None).match is None

    world.random = 0.03
    match = service.serve(proxy("p2"), network=None).match

    assert match is not None
    assert match.client_id == "c"
