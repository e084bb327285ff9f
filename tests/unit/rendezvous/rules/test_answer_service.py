"""The service of proxy answers."""

import json

from signalbox.rendezvous.model.states import OfferState
from tests.unit.rendezvous.rules.services import ANSWER, CLIENT, World, delivery, matched, proxy


def test_an_answer_reaches_the_client_and_ends_the_offer() -> None:
    world = matched()

    assert world.answer(proxy())

    assert [json.loads(reply) for reply in world.replies] == [{"answer": ANSWER}]
    assert world.broker_queue.deleted == ["h1"]
    assert world.offers.records[CLIENT].state is OfferState.ANSWERED
    assert world.offers.records[CLIENT].session_description == ""


def test_an_answer_before_any_match_is_refused_at_once_and_not_stored() -> None:
    """Upstream blocks, then delivers it to the proxy's next client."""
    world = World()

    assert not world.answer(proxy())
    world.expect_proxies()
    world.receive(delivery())

    assert world.replies == []


def test_after_the_first_answer_the_client_counts_as_gone() -> None:
    world = matched()

    assert world.answer(proxy())
    assert not world.answer(proxy())
    assert len(world.replies) == 1


def test_after_the_end_of_patience_the_client_counts_as_gone() -> None:
    world = matched()
    world.wait(30)

    assert not world.answer(proxy())


def test_a_network_whose_answers_miss_again_and_again_does_not_search_the_offers() -> None:
    """An answer without a client reads all offers of the last half minute, which a stranger can make many."""
    world = matched()
    searches: list[str] = []
    sought = world.offers.matched_by
    world.offers.matched_by = lambda sid, since: searches.append(sid) or sought(sid, since=since)

    for _ in range(10):
        assert not world.answer(proxy("stranger"), network=1)
    assert len(searches) == 3
    assert not world.answer(proxy(), network=1)
    assert world.answer(proxy(), network=2)

    world.wait(10)
    assert not world.answer(proxy("stranger"), network=1)
    assert len(searches) == 5
