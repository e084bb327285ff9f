"""The pace of proxies: the interval follows from their number, and the target is reached whatever it is."""

from dataclasses import replace
from datetime import timedelta
from math import exp

import pytest

from signalbox.rendezvous.model.pace import (
    COUNTED_FOR,
    FIRST_INTERVAL,
    LONGEST_COUNTED_FOR,
    LONGEST_INTERVAL,
    SHORTEST_INTERVAL,
    Pace,
    ProxyGroup,
    ProxyKind,
    allowed_polls,
    first_pace,
    has_compatible_proxy,
    known_proxies,
    next_pace,
    served_share,
    waiting_time,
)
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.rendezvous import START

SECOND = timedelta(seconds=1)
WEBEXT, BADGE = ProxyKind(Nat.RESTRICTED, "webext"), ProxyKind(Nat.UNKNOWN, "badge")
END = START + COUNTED_FOR


def counted(polls: int, *, interval: timedelta = FIRST_INTERVAL) -> Pace:
    return replace(first_pace(START), interval=interval, followed=interval, polls={WEBEXT: polls})


def test_a_pace_stays_until_polls_were_counted_for_some_time() -> None:
    assert next_pace(counted(1000), now=END - SECOND, target=1) is None


def test_the_interval_is_the_number_of_proxies_by_the_target_polls() -> None:
    """600 polls in 30 s are those of 100 proxies that poll each 5 s."""
    pace = replace(counted(0, interval=5 * SECOND), polls={WEBEXT: 450, BADGE: 150})

    found = next_pace(pace, now=END, target=10)

    assert found is not None
    assert found.interval == 10 * SECOND
    assert found.known == {WEBEXT: 75, BADGE: 25}
    assert found.polls_per_second == 20
    assert (found.since, found.polls) == (END, {})


@pytest.mark.parametrize(
    ("polls", "interval", "following"),
    [
        (0, FIRST_INTERVAL, SHORTEST_INTERVAL),
        (10**9, FIRST_INTERVAL, 2 * FIRST_INTERVAL),
        (0, 600 * SECOND, 300 * SECOND),
        (0, SHORTEST_INTERVAL, SHORTEST_INTERVAL),
        (10**9, LONGEST_INTERVAL, LONGEST_INTERVAL),
    ],
)
def test_an_interval_at_most_doubles_or_halves_within_its_limits(
    polls: int, interval: timedelta, following: timedelta
) -> None:
    found = next_pace(counted(polls, interval=interval), now=START + LONGEST_COUNTED_FOR, target=1)

    assert found is not None
    assert found.interval == following


@pytest.mark.parametrize(("interval", "counted_for"), [(1, 30), (60, 120), (3600, 180)])
def test_polls_are_counted_for_two_intervals_or_three_minutes(interval: int, counted_for: int) -> None:
    pace = counted(5, interval=interval * SECOND)

    assert next_pace(pace, now=START + (counted_for - 1) * SECOND, target=1) is None
    assert next_pace(pace, now=START + counted_for * SECOND, target=1) is not None


def test_proxies_that_still_follow_the_former_interval_are_not_estimated_as_more() -> None:
    """A hundred proxies of which nearly all still poll each 1,000 s, after the interval became 2,000 s."""
    pace = replace(counted(18, interval=2000 * SECOND), followed=1000 * SECOND)

    found = next_pace(pace, now=START + LONGEST_COUNTED_FOR, target=0.1)

    assert found is not None
    assert found.known[WEBEXT] == pytest.approx(100, rel=0.1)
    assert found.followed.total_seconds() == pytest.approx(1000 / (1 - (1 - exp(-0.18)) / 2))


def test_polls_of_a_network_beyond_a_fifth_of_the_target_are_not_counted() -> None:
    """Of ten networks nine poll twice a second and one a hundred times: it counts for two and the memory of as many."""
    networks = dict.fromkeys(range(9), 60) | {9: 3000}
    pace = replace(counted(9 * 60 + 3000), networks=networks)

    found = next_pace(pace, now=END, target=20)

    assert found is not None
    assert found.polls_per_second == pytest.approx(18 + 4 * 2, rel=0.05)
    assert found.networks == dict.fromkeys(range(9), 30) | {9: 1500}


@pytest.mark.parametrize(("networks", "share"), [(0, 1.5), (1, 1.5), (3, 0.5), (8, 0.2), (64, 0.2)])
def test_few_networks_have_one_and_a_half_times_their_even_part(networks: int, share: float) -> None:
    pace = replace(counted(0), networks=dict.fromkeys(range(networks), 1))

    assert allowed_polls(pace, now=END, target=10) == pytest.approx(share * 10 * 60)


@pytest.mark.parametrize(("random", "seconds"), [(0, 1), (1 - exp(-1), 60), (0.999, 1 + 3 * 59)])
def test_the_waits_of_proxies_are_spread_around_the_interval(random: float, seconds: float) -> None:
    found = waiting_time(counted(0, interval=60 * SECOND), random=random)

    assert found.total_seconds() == pytest.approx(seconds)


@pytest.mark.parametrize(("rate", "share"), [(0, 1), (5, 1), (20, 1), (40, 0.5), (2000, 0.01)])
def test_polls_beyond_twice_the_target_are_not_served(rate: float, share: float) -> None:
    assert served_share(replace(counted(0), polls_per_second=rate), target=10) == share


@pytest.mark.parametrize(("after", "is_present"), [(60, True), (90, True), (91, False)])
def test_a_group_is_present_for_three_intervals(after: int, *, is_present: bool) -> None:
    paces = {ProxyGroup.RESTRICTED: counted(1, interval=30 * SECOND)}
    now = START + after * SECOND

    assert has_compatible_proxy(paces, Nat.UNRESTRICTED, now=now, recency=60 * SECOND) is is_present
    assert not has_compatible_proxy(paces, Nat.RESTRICTED, now=now, recency=60 * SECOND)
    assert known_proxies(paces, now=now, recency=60 * SECOND) == ({WEBEXT: 1} if is_present else {})


def test_the_number_of_proxies_is_that_of_the_last_period() -> None:
    pace = replace(counted(3), known={BADGE: 7})

    assert known_proxies({ProxyGroup.RESTRICTED: pace}, now=START, recency=SECOND) == {BADGE: 7}
