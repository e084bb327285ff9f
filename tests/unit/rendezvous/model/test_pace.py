"""The pace of proxies: the interval follows from their number, and the target is reached whatever it is."""

from dataclasses import replace
from datetime import timedelta
from math import exp

import pytest

from signalbox.rendezvous.model.pace import (
    COUNTED_FOR,
    FIRST_INTERVAL,
    LONGEST_INTERVAL,
    SHARED_EVERY,
    SHORTEST_INTERVAL,
    Pace,
    ProxyGroup,
    ProxyKind,
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
    return replace(first_pace(START), interval=interval, polls={WEBEXT: polls})


def test_a_pace_stays_until_polls_were_counted_for_some_time() -> None:
    assert next_pace(counted(1000), now=END - SECOND, target=1) is None


def test_the_interval_is_the_number_of_proxies_by_the_target_polls() -> None:
    """500 polls in 30 s, of which the last five may miss some, are those of 100 proxies that poll each 5 s."""
    pace = replace(counted(0, interval=5 * SECOND), polls={WEBEXT: 375, BADGE: 125})

    found = next_pace(pace, now=END, target=10)

    assert found is not None
    assert found.interval == 10 * SECOND
    assert found.known == {WEBEXT: 75, BADGE: 25}
    assert found.polls_per_second == 20
    assert found.polls == {}


@pytest.mark.parametrize(
    ("polls", "interval"), [(0, SHORTEST_INTERVAL), (1, SHORTEST_INTERVAL), (10**9, LONGEST_INTERVAL)]
)
def test_the_interval_has_limits(polls: int, interval: timedelta) -> None:
    found = next_pace(counted(polls), now=END, target=1)

    assert found is not None
    assert found.interval == interval


@pytest.mark.parametrize(("interval", "begins"), [(SECOND, SHARED_EVERY), (60 * SECOND, 120 * SECOND)])
def test_polls_are_counted_again_when_proxies_and_instances_know_the_interval(
    interval: timedelta, begins: timedelta
) -> None:
    found = next_pace(counted(5, interval=interval), now=END, target=1)

    assert found is not None
    assert found.since == END + begins


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
