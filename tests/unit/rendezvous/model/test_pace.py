"""The pace of proxies: the interval follows from their number, and the target is reached whatever it is."""

from dataclasses import replace
from datetime import timedelta
from math import exp

import pytest

from signalbox.rendezvous.model.pace import (
    COUNTED_FOR,
    CROWD_INTERVAL,
    FIRST_INTERVAL,
    LOCAL_GROUP,
    LONGEST_COUNTED_FOR,
    LONGEST_INTERVAL,
    NETWORK_GROUPS,
    REMEMBERED,
    SHORTEST_INTERVAL,
    Pace,
    ProxyGroup,
    ProxyKind,
    counted_polls,
    first_pace,
    has_compatible_proxy,
    known_proxies,
    next_pace,
    served_polls,
    waiting_time,
)
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.rendezvous import START

SECOND = timedelta(seconds=1)
WEBEXT, BADGE = ProxyKind(Nat.RESTRICTED, "webext"), ProxyKind(Nat.UNKNOWN, "badge")
END = START + COUNTED_FOR


def counted(polls: int, *, interval: timedelta = FIRST_INTERVAL) -> Pace:
    networks = {LOCAL_GROUP: polls}
    return replace(
        first_pace(START), interval=interval, followed=interval, polls={WEBEXT: max(polls, 1)}, networks=networks
    )


def of_networks(networks: dict[int, int], *, interval: timedelta = 60 * SECOND) -> Pace:
    return replace(counted(0, interval=interval), networks=networks)


def test_a_pace_stays_until_polls_were_counted_for_some_time() -> None:
    assert next_pace(counted(1000), now=END - SECOND, target=1) is None


def test_the_interval_is_the_number_of_proxies_by_the_target_polls() -> None:
    """600 polls in 30 s, and as many that are remembered, are those of 100 proxies that poll each 5 s."""
    pace = replace(counted(1200, interval=5 * SECOND), polls={WEBEXT: 450, BADGE: 150})

    found = next_pace(pace, now=END, target=10)

    assert found is not None
    assert found.interval == 10 * SECOND
    assert found.known == {WEBEXT: 75, BADGE: 25}
    assert (found.since, found.polls, found.networks) == (END, {}, {LOCAL_GROUP: 600})


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
    pace = replace(counted(21, interval=2000 * SECOND), followed=1000 * SECOND)

    found = next_pace(pace, now=START + LONGEST_COUNTED_FOR, target=0.1)

    assert found is not None
    assert found.known[WEBEXT] == pytest.approx(100, rel=0.1)
    assert found.followed.total_seconds() == pytest.approx(1000 / (1 - (1 - exp(-0.18)) / 2))


def test_what_is_remembered_of_many_networks_is_their_polls_in_thirty_seconds() -> None:
    """Of two polls in 210 s a group keeps 0.3, so some groups keep one."""
    pace = of_networks(dict.fromkeys(range(NETWORK_GROUPS), 2))

    found = next_pace(pace, now=START + LONGEST_COUNTED_FOR, target=2 * NETWORK_GROUPS / 210)

    assert found is not None
    assert found.interval == 60 * SECOND
    assert set(found.networks.values()) == {1}
    assert len(found.networks) == pytest.approx(2 * NETWORK_GROUPS / 7, abs=3)


@pytest.mark.parametrize("flood", [200, 10**6])
def test_a_network_counts_for_eight_proxies_or_for_two_medians(flood: int) -> None:
    """Of 200 groups each has three proxies; 99 of strangers count for as many as two each, or for eight."""
    for proxies, most in ((3, 8), (20, 40)):
        networks = dict.fromkeys(range(101), 2 * proxies) | dict.fromkeys(range(101, NETWORK_GROUPS), flood)
        pace = of_networks(networks, interval=(LONGEST_COUNTED_FOR + REMEMBERED) / 2)

        found = next_pace(replace(pace, polls={WEBEXT: 1}), now=START + LONGEST_COUNTED_FOR, target=1)

        assert found is not None
        assert found.known[WEBEXT] == 101 * proxies + 99 * most


@pytest.mark.parametrize("interval", [20, 30, 60])
def test_all_polls_of_one_address_raise_the_interval_up_to_half_a_minute(interval: int) -> None:
    found = next_pace(of_networks({7: 10**6}, interval=interval * SECOND), now=START + LONGEST_COUNTED_FOR, target=1)

    assert found is not None
    assert found.interval == CROWD_INTERVAL


def test_a_network_that_has_left_is_forgotten() -> None:
    pace = of_networks(dict.fromkeys(range(NETWORK_GROUPS), 1), interval=60 * SECOND)
    for _ in range(10):
        found = next_pace(replace(pace, polls={WEBEXT: 1}), now=pace.since + LONGEST_COUNTED_FOR, target=1)
        assert found is not None
        pace = found

    assert not pace.networks


def test_a_poll_of_each_network_counts() -> None:
    pace = of_networks(dict.fromkeys(range(5), 1), interval=LONGEST_INTERVAL)

    assert counted_polls(pace, now=END) == 1


@pytest.mark.parametrize(
    ("networks", "served"),
    [
        ([], 1200),
        ([100], 1200),
        ([100, 300], 1100),
        ([100, 700, 700], 550),
        ([100, 100, 10**6], 1000),
        ([10**6] * 4, 300),
        ([1, 200, 10**6, 10**6, 10**6], 999 / 3),
    ],
)
def test_networks_have_even_parts_of_twice_the_target_and_what_others_do_not_use(
    networks: list[int], served: float
) -> None:
    """The target of 60 s are 600 polls."""
    found = served_polls(of_networks(dict(enumerate(networks))), now=END, target=10)

    assert found == pytest.approx(served)


@pytest.mark.parametrize(("random", "seconds"), [(0, 1), (1 - exp(-1), 60), (0.999, 1 + 3 * 59)])
def test_the_waits_of_proxies_are_spread_around_the_interval(random: float, seconds: float) -> None:
    found = waiting_time(counted(0, interval=60 * SECOND), random=random)

    assert found.total_seconds() == pytest.approx(seconds)


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
