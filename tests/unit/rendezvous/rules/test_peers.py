"""Stages of several regions share their proxies, and a region that is away takes no offer of the others with it."""

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.rules.peer_address import InvalidPeer, PeerAddress, parse_peers
from signalbox.rendezvous.rules.peers import PRESENCE_TIME, REST, Breaker
from signalbox.rendezvous.rules.states import (
    OPEN_STATES,
    ClaimResult,
    ClientId,
    ForeignOffer,
    OfferState,
    Rendezvous,
    RendezvousMethod,
)
from signalbox.rendezvous.wire.bridges import DEFAULT_BRIDGES
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import Offer
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT, answer_reply, error_reply
from tests.fakes.rendezvous import START, MemoryAnnouncements
from tests.unit.rendezvous.rules.regions import FAR, HOME, NEAR, Away, Region, Regions
from tests.unit.rendezvous.rules.services import ANSWER, CLIENT, Killed, delivery, proxy

ANSWERED = [answer_reply(ANSWER)]
FOREIGN = ForeignOffer(CLIENT, HOME)


def test_an_offer_of_one_region_meets_a_proxy_of_another():
    regions = Regions()
    regions.near.expect_proxies()

    parked = regions.home.receive(delivery())
    polled = regions.near.poll(proxy())
    answered = regions.near.answer(proxy())

    assert not parked.done
    assert polled.match is not None
    assert (polled.match.home, polled.match.session_description) == (HOME, regions_offer())
    assert answered is not None
    assert (answered.client_id, answered.home) == (CLIENT, HOME)
    assert regions.home.replies(CLIENT) == ANSWERED
    assert regions.home.broker_queue.deleted == ["h1"]
    assert regions.near.announcements.announcements == {}


def test_an_own_offer_is_matched_and_answered_in_its_region():
    regions = Regions()
    regions.home.expect_proxies()
    regions.home.receive(delivery())
    regions.home.poll(proxy())
    shared, sid = regions.home.shared_offers, proxy().sid

    assert shared.matched_by(sid) == CLIENT
    answered = shared.answer(CLIENT, sid=sid, reply=answer_reply(ANSWER), now=START, leased_until=START)

    assert answered is not None
    assert answered.state is OfferState.ANSWERED
    assert regions.home.offers.records[CLIENT].state is OfferState.ANSWERED


def regions_offer() -> str:
    return Offer.parse(delivery().body, DEFAULT_BRIDGES).session_description


def test_an_announcement_contains_no_session_description():
    regions = Regions()
    regions.near.expect_proxies()

    regions.home.receive(delivery())

    (announced,) = regions.near.announcements.announcements.values()
    assert (announced.session_description, announced.receipt_handle, announced.queue_url) == ("", None, None)


def test_an_offer_is_announced_only_where_a_compatible_proxy_polled():
    regions = Regions()
    regions.near.expect_proxies(Nat.RESTRICTED)
    regions.far.expect_proxies(Nat.UNRESTRICTED)

    regions.home.receive(delivery(nat="restricted"))

    assert list(regions.far.announcements.announcements) == [FOREIGN.key]
    assert regions.near.announcements.announcements == {}


def test_an_offer_without_a_proxy_in_any_region_is_denied_at_once():
    regions = Regions()

    assert regions.home.receive(delivery()).done
    assert regions.home.replies(CLIENT) == [error_reply(NO_PROXIES)]


def test_an_offer_that_a_held_poll_got_is_announced_when_the_proxy_stays_silent():
    regions = Regions()
    regions.home.hold(proxy("silent"))
    regions.near.expect_proxies()

    regions.home.receive(delivery())
    before = dict(regions.near.announcements.announcements)
    regions.clock.sleep(3)
    regions.home.receive(delivery(handle="h2"))

    assert before == {}
    assert regions.near.poll(proxy()).match is not None


def test_a_poll_gets_the_offers_of_its_own_region_first():
    regions = Regions()
    for region in (regions.home, regions.near):
        region.expect_proxies()
    regions.home.receive(delivery())
    regions.clock.sleep(1)
    own = replace(delivery(message_id="m2"), client_id=ClientId("own"))
    regions.near.receive(own)

    matches = [regions.near.poll(proxy(sid)).match for sid in ("p1", "p2")]

    assert [match and match.client_id for match in matches] == ["own", CLIENT]


def test_a_held_poll_finds_an_offer_of_another_region():
    regions = Regions()
    regions.near.expect_proxies()
    regions.clock.at(1, lambda: regions.home.receive(delivery()))

    result = regions.near.poll(proxy(), hold_seconds=10)

    assert result.was_held
    assert result.match is not None


def test_an_offer_over_http_meets_a_proxy_of_another_region():
    regions = Regions()
    regions.near.expect_proxies()
    served = []

    def serve() -> None:
        regions.near.poll(proxy())
        served.append(regions.near.answer(proxy()))

    regions.clock.at(1, serve)
    offer = Offer.parse(delivery().body, DEFAULT_BRIDGES)
    http = ClientId("http:request-id=")
    record = regions.home.client_service().serve(offer, client_id=http, method=RendezvousMethod.HTTP, country="??")

    assert record.reply == answer_reply(ANSWER)
    assert served[0] is not None


def test_proxies_of_two_regions_do_not_get_the_same_offer():
    regions = Regions()
    for region in (regions.near, regions.far):
        region.expect_proxies()
    regions.home.receive(delivery())

    matches = [region.poll(proxy(region.name)).match for region in (regions.near, regions.far)]

    assert [match is not None for match in matches] == [True, False]


def test_polls_of_a_region_call_the_home_of_an_offer_once_until_its_match_is_over():
    regions = Regions()
    for region in (regions.near, regions.far):
        region.expect_proxies()
    regions.home.receive(delivery())
    regions.far.poll(proxy("far"))

    first = regions.near.poll(proxy("p1")).match
    regions.network.away.add(HOME)
    second = regions.near.poll(proxy("p2")).match

    assert (first, second) == (None, None)
    assert regions.network.failed == 0  # the second poll did not call


def test_an_offer_whose_proxy_stays_silent_goes_to_a_proxy_of_a_third_region():
    regions = Regions()
    for region in (regions.near, regions.far):
        region.expect_proxies()
    regions.home.receive(delivery())
    regions.near.poll(proxy("silent"))
    regions.clock.sleep(5)

    assert regions.far.poll(proxy("p2")).match is not None
    assert regions.far.answer(proxy("p2")) is not None
    assert regions.near.answer(proxy("silent")) is None
    assert regions.home.replies(CLIENT) == ANSWERED


def test_an_announcement_of_an_offer_that_has_ended_is_removed_by_the_first_poll():
    regions = Regions()
    for region in (regions.home, regions.near):
        region.expect_proxies()
    regions.home.receive(delivery())
    regions.home.poll(proxy("p1"))
    regions.home.answer(proxy("p1"))

    assert regions.near.poll(proxy("p2")).match is None
    assert regions.near.announcements.announcements == {}


def test_an_announcement_whose_client_gave_up_is_removed_without_a_call_to_its_home():
    regions = Regions()
    regions.near.expect_proxies()
    regions.home.receive(delivery())
    regions.clock.sleep(30)
    regions.network.away.add(HOME)

    assert regions.near.poll(proxy()).match is None
    assert regions.near.announcements.announcements == {}
    assert regions.network.failed == 0


def receive(regions: Regions, name: str) -> None:
    """Deliver the offer of another client to the home region."""
    regions.home.receive(replace(delivery(message_id=name), client_id=ClientId(name)))


def test_offers_whose_clients_gave_up_do_not_hide_the_next_one():
    regions = Regions()
    regions.near.announcements.page_size = 3
    regions.near.expect_proxies()
    for number in range(3):
        receive(regions, f"late-{number}")
    regions.clock.sleep(30)
    regions.near.expect_proxies()
    receive(regions, "next")

    matches = [regions.near.poll(proxy(sid)).match for sid in ("p1", "p2")]

    assert [match and match.client_id for match in matches] == [None, "next"]


class Slow:
    """The offers of a region that is far away, all of which other proxies have got."""

    def __init__(self, regions: Regions) -> None:
        self.regions, self.calls = regions, 0

    def claim(self, *_arguments: object, **_options: object) -> ClaimResult:
        self.calls += 1
        self.regions.clock.sleep(0.4)
        return ClaimResult(None, is_stored=True)

    def find(self, client_id: ClientId) -> Rendezvous | None:
        self.regions.clock.sleep(0.4)
        return self.regions.home.offers.find(client_id)


def test_a_poll_does_not_try_far_offers_that_others_got_until_its_function_ends():
    regions = Regions()
    regions.near.expect_proxies()
    for number in range(20):
        receive(regions, f"c{number}")
    peer = regions.near.peers.of(HOME)
    assert peer is not None
    peer.offers = slow = Slow(regions)

    assert regions.near.poll(proxy()).match is None
    assert slow.calls == 3  # of 0.8 s each, in two seconds


def test_an_offer_goes_on_at_home_when_the_peers_are_away():
    regions = Regions()
    for region in (regions.home, regions.near):
        region.expect_proxies()
    regions.network.away |= {NEAR, FAR}

    regions.home.receive(delivery())
    regions.home.poll(proxy())
    regions.home.answer(proxy())

    assert regions.home.replies(CLIENT) == ANSWERED
    assert regions.home.reported == [NEAR, FAR]


def test_a_region_that_is_away_gets_one_call_until_its_rest_is_over():
    regions = Regions()
    regions.home.expect_proxies()
    regions.network.away |= {NEAR}

    for number in range(4):
        regions.home.receive(replace(delivery(message_id=f"m{number}"), client_id=ClientId(f"c{number}")))
        regions.clock.sleep((PRESENCE_TIME + timedelta(seconds=1)).total_seconds())
    failed = regions.network.failed
    regions.clock.sleep(REST.total_seconds())
    regions.network.away.clear()
    regions.near.expect_proxies()
    regions.home.expect_proxies()
    regions.home.receive(delivery())

    assert failed == 1
    assert FOREIGN.key in regions.near.announcements.announcements


@dataclass
class Throttled:
    """The announcements of a region that refuses the next calls."""

    announcements: MemoryAnnouncements
    refused: int

    def announce(self, record: Rendezvous, *, home: str) -> None:
        if self.refused:
            self.refused -= 1
            raise Away(home)
        self.announcements.announce(record, home=home)


@pytest.mark.parametrize(("refused", "announced"), [(1, True), (2, False)])
def test_a_call_that_a_peer_throttles_is_repeated_once_at_once(refused, announced):
    regions = Regions()
    regions.near.expect_proxies()
    regions.home.instance = replace(regions.home.peers, passes=lambda error: isinstance(error, Away))
    peer = regions.home.peers.of(NEAR)
    assert peer is not None
    peer.announcements = Throttled(regions.near.announcements, refused)

    regions.home.receive(delivery())

    assert (FOREIGN.key in regions.near.announcements.announcements) is announced
    assert regions.home.reported == ([] if announced else [NEAR])


def test_an_offer_whose_home_is_away_is_given_to_no_proxy():
    regions = Regions()
    regions.near.expect_proxies()
    regions.home.receive(delivery())
    regions.network.away.add(HOME)

    polls = [regions.near.poll(proxy(sid)).match for sid in ("p1", "p2", "p3")]

    assert polls == [None] * 3
    assert regions.network.failed == 1


def test_an_answer_to_a_region_that_went_away_fails_and_another_proxy_answers():
    regions = Regions()
    for region in (regions.home, regions.near):
        region.expect_proxies()
    regions.home.receive(delivery())
    regions.near.poll(proxy("near"))
    regions.network.away.add(HOME)

    with pytest.raises(Away):
        regions.near.answer(proxy("near"))
    regions.clock.sleep(5)
    regions.home.poll(proxy("p2"))
    regions.home.answer(proxy("p2"))

    assert regions.home.replies(CLIENT) == ANSWERED


def test_the_withdrawal_of_an_announcement_waits_for_a_home_that_went_away():
    regions = Regions()
    for region in (regions.home, regions.near):
        region.expect_proxies()
    regions.home.receive(delivery())
    regions.home.poll(proxy("p1"))
    regions.home.answer(proxy("p1"))
    peer = regions.near.peers.of(HOME)
    assert peer is not None
    claim = peer.offers.claim

    class LastCall:
        """The offers of a region that is cut off after its next answer."""

        def claim(self, *arguments, **options):
            result = claim(*arguments, **options)
            regions.network.away.add(HOME)
            return result

        def find(self, client_id):
            raise Away(client_id)

    peer.offers = LastCall()

    assert regions.near.poll(proxy("p2")).match is None
    assert list(regions.near.announcements.announcements) == [FOREIGN.key]


def test_an_answer_without_a_match_is_refused():
    assert Regions().near.answer(proxy()) is None


def test_an_answer_to_an_own_offer_stays_in_the_region():
    regions = Regions()
    regions.home.expect_proxies()
    regions.home.receive(delivery())
    regions.home.poll(proxy())
    regions.network.away |= {NEAR, FAR}

    record = regions.home.answer(proxy())

    assert record is not None
    assert record.home is None


def test_a_match_of_a_peer_that_was_removed_from_the_setting_is_refused():
    regions = Regions()
    regions.near.expect_proxies()
    regions.home.receive(delivery())
    regions.near.poll(proxy())
    regions.near.others.clear()

    assert regions.near.answer(proxy()) is None


def test_an_announcement_of_a_peer_that_was_removed_is_not_claimed():
    regions = Regions()
    regions.near.expect_proxies()
    regions.home.receive(delivery())
    regions.near.others.clear()

    offers = regions.near.shared_offers

    assert offers.claim(FOREIGN.key, proxy=None, now=START, until=START).match is None


def test_a_refused_offer_is_not_announced():
    regions = Regions()
    regions.near.expect_proxies()

    assert regions.home.receive(delivery(body=b"1.0\n{}")).done
    assert regions.near.announcements.announcements == {}


def test_a_redelivery_of_an_offer_that_was_answered_is_not_announced():
    regions = Regions()
    regions.near.expect_proxies()
    regions.home.receive(delivery())
    regions.near.poll(proxy())
    regions.near.answer(proxy())

    answered = regions.home.offers.records[CLIENT]
    assert not regions.home.shared_offers.renew(answered, receipt_handle="h2")
    assert regions.near.announcements.announcements == {}


kills, moments = st.integers(0, 14), st.booleans()


@given(
    calls=kills, after=moments, where=st.sampled_from(["receive", "poll", "answer"]), cut=st.none() | st.integers(0, 5)
)
def test_a_kill_or_a_cut_anywhere_leaves_the_client_with_one_answer(
    calls: int, *, after: bool, where: str, cut: int | None
) -> None:
    """A function is killed at any call of one step, and the proxy's region is cut off after some step."""
    regions = Regions()
    taken = {
        "receive": (regions.home, lambda: regions.home.receive(delivery())),
        "poll": (regions.near, lambda: regions.near.poll(proxy("near"))),
        "answer": (regions.near, lambda: regions.near.answer(proxy("near"))),
    }
    for number, (name, (region, step)) in enumerate(taken.items()):
        for each in (regions.home, regions.near):
            each.expect_proxies()
        if number == cut:
            regions.network.away.add(NEAR)
        region.fuse.calls_left, region.fuse.after = (calls, after) if name == where else (None, False)
        try_step(region, step)

    finish_at_home(regions)

    assert set(regions.home.replies(CLIENT)) == set(ANSWERED)
    assert len(regions.home.replies(CLIENT)) <= 2  # twice only after a kill between sending and deleting
    assert regions.home.offers.records[CLIENT].state is OfferState.ANSWERED


def try_step(region: Region, step) -> None:
    try:
        step()
    except (Killed, Away):
        region.instance = None  # a new function instance
    region.fuse.calls_left = None


def finish_at_home(regions: Regions) -> None:
    """Deliver the offer again until it is done; proxies of its own region poll and answer."""
    for number in range(2, 12):
        if regions.home.broker_queue.deleted:
            return
        regions.clock.sleep(3)
        regions.home.expect_proxies()
        result = regions.home.receive(delivery(handle=f"h{number}"))
        if result.done:
            return
        record = regions.home.offers.records[CLIENT]
        if record.state in OPEN_STATES and regions.home.poll(proxy(f"p{number}")).match:
            regions.home.answer(proxy(f"p{number}"))


def test_a_client_that_no_region_serves_gets_an_error():
    regions = Regions()
    regions.near.expect_proxies()
    regions.home.receive(delivery())
    regions.near.poll(proxy("silent"))
    regions.network.away.add(HOME)
    regions.clock.sleep(30)

    assert regions.home.receive(delivery(handle="h2")).done
    assert regions.home.replies(CLIENT) == [error_reply(TIMED_OUT)]


def test_one_call_tries_a_peer_again_after_its_rest():
    breaker = Breaker()
    breaker.record(START, succeeded=False)

    admitted = [breaker.admits(moment) for moment in (START, START + REST, START + REST)]

    assert admitted == [False, True, False]
    breaker.record(START + REST, succeeded=True)
    assert breaker.admits(START + REST)


ADDRESS = PeerAddress(
    "eu-west-1", "broker-eu", "broker-eu-state-Rendezvous1A-2B", "1234-abcd", "snowflake-broker", "snowflake-client-"
)


def test_an_address_is_read_as_it_is_written():
    assert parse_peers(f"{ADDRESS},{replace(ADDRESS, region='us-east-1')}") == (
        ADDRESS,
        replace(ADDRESS, region="us-east-1"),
    )
    assert parse_peers("") == ()


@pytest.mark.parametrize("text", ["eu-west-1", f"{ADDRESS}:more", str(ADDRESS).replace("snowflake-broker", "")])
def test_another_text_is_no_address(text):
    with pytest.raises(InvalidPeer, match="expected region:stage:table"):
        parse_peers(text)


def test_a_region_has_one_peer():
    with pytest.raises(InvalidPeer, match="several peers are in 'eu-west-1'"):
        parse_peers(f"{ADDRESS},{ADDRESS}")


@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        ("https://sqs.us-east-1.amazonaws.com/1234/own", "https://sqs.eu-west-1.amazonaws.com/1234/snowflake-broker"),
        ("http://127.0.0.1:4566/1234/own", "http://127.0.0.1:4566/1234/snowflake-broker"),
    ],
)
def test_the_broker_queue_of_a_peer_has_its_region_and_name(own, theirs):
    assert ADDRESS.queue_url(own, region="us-east-1") == theirs
