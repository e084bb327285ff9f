"""The pacer of polls: however many proxies there are, they poll as often as the target says."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from random import Random

import pytest

from signalbox.rendezvous.model.pace import FIRST_INTERVAL, ProxyGroup, waiting_time
from signalbox.rendezvous.rules.pacer import Pacer
from signalbox.rendezvous.rules.policy import RendezvousPolicy
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.rendezvous import START, MemoryPaces
from tests.unit.rendezvous.rules.services import proxy

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
POLICY = RendezvousPolicy(polls_per_minute=900)
TARGET = 10  # of unrestricted proxies: two thirds of 15 a second


def polls_by_minute(proxies: int, *, instances: int, minutes: int) -> Counter[int]:
    """Simulate proxies that follow it; return the number of polls in each minute."""
    paces, random = MemoryPaces(), Random(1)  # noqa: S311 - a simulation
    pacers = [Pacer(paces, POLICY) for _ in range(instances)]
    due: list[tuple[datetime, int]] = [(START + FIRST_INTERVAL * n / proxies, n) for n in range(proxies)]
    heapify(due)
    polled: Counter[int] = Counter()
    while due[0][0] < START + minutes * timedelta(minutes=1):
        now, number = heappop(due)
        pace = random.choice(pacers).count(proxy(str(number), nat=Nat.UNRESTRICTED), network=None, now=now)
        polled[(now - START) // timedelta(minutes=1)] += 1
        heappush(due, (now + waiting_time(pace, random=random.random()), number))
    return polled


@pytest.mark.parametrize("proxies", [20, 300, 3000])
def test_obedient_proxies_poll_as_often_as_the_target_whatever_their_number(proxies: int) -> None:
    polled = polls_by_minute(proxies, instances=3, minutes=30)

    expected = min(proxies, TARGET) * 60
    assert all(0.7 * expected <= polled[minute] <= 1.4 * expected for minute in range(20, 30)), polled


def test_a_few_proxies_poll_every_second() -> None:
    assert polls_by_minute(2, instances=1, minutes=3)[2] == 120


def test_networks_that_poll_seldom_are_served_at_the_end_of_a_period() -> None:
    """After it, no poll of theirs counts."""
    pacer, poll = Pacer(MemoryPaces(), RendezvousPolicy(polls_per_minute=60)), proxy("1", nat=Nat.UNRESTRICTED)
    for number in range(2_000):
        now = START + number * SECOND
        pacer.count(poll, network=number % 200, now=now)
        assert pacer.is_served(poll, network=number % 200, random=0)


def test_disobedient_proxies_are_served_as_often_as_the_target() -> None:
    paces = MemoryPaces()
    pacer = Pacer(paces, POLICY)
    served = 0
    for number in range(18_000):  # a hundred a second
        now = START + number * SECOND / 100
        poll = proxy(str(number), nat=Nat.UNRESTRICTED)
        pacer.count(poll, network=None, now=now)
        is_served = pacer.is_served(poll, network=None, random=number * 7919 % 1000 / 1000)
        served += is_served and now >= START + 2 * MINUTE

    assert served == pytest.approx(2 * TARGET * 60, rel=0.2)


def test_a_group_whose_pace_is_gone_is_paced_until_its_next_share() -> None:
    paces = MemoryPaces()
    pacer = Pacer(paces, POLICY)
    pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START)
    paces.paces.clear()
    pacer.count(proxy(nat=Nat.RESTRICTED), network=None, now=START + SECOND)

    assert pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START + 2 * SECOND).interval == FIRST_INTERVAL
    assert pacer.is_served(proxy(nat=Nat.UNRESTRICTED), network=None, random=0)


def test_an_instance_shares_its_polls_each_ten_seconds() -> None:
    paces = MemoryPaces()
    pacer = Pacer(paces, POLICY)
    for seconds in range(11):
        pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START + seconds * SECOND)

    assert sum(paces.paces[ProxyGroup.UNRESTRICTED].polls.values()) == 11


def test_the_pace_of_the_faster_of_two_instances_stays() -> None:
    paces = MemoryPaces()
    pacer = Pacer(paces, POLICY)
    pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START)
    paces.replace = lambda *_, **__: False

    pace = pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START + 30 * SECOND)

    assert pace.interval == FIRST_INTERVAL


@dataclass
class Flood:
    """Obedient proxies, each behind its own address, and addresses of strangers that poll at each instance."""

    proxies: int
    instances: int
    strangers: int = 1
    kind: str = "webext"
    paces: MemoryPaces = field(default_factory=MemoryPaces)
    random: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - a simulation
    served: Counter[tuple[str, int]] = field(default_factory=Counter)
    intervals: dict[int, float] = field(default_factory=dict)

    def run(self, *, begins: int, ends: int, minutes: int, each: timedelta) -> None:
        pacers = [Pacer(self.paces, POLICY) for _ in range(self.instances)]
        due = [(START + FIRST_INTERVAL * n / self.proxies, self.strangers + n) for n in range(self.proxies)]
        due += [(START + begins * MINUTE + each * n / self.strangers, n) for n in range(self.strangers)]
        heapify(due)
        turn = 0
        while due[0][0] < START + minutes * MINUTE:
            now, number = heappop(due)
            minute, is_stranger = (now - START) // MINUTE, number < self.strangers
            turn += is_stranger
            pacer = pacers[turn % self.instances] if is_stranger else self.random.choice(pacers)
            poll = replace(proxy(str(number), nat=Nat.UNRESTRICTED), proxy_type=self.kind if is_stranger else "webext")
            pace = pacer.count(poll, network=number, now=now)
            self.intervals[minute] = pace.interval.total_seconds()
            is_served = pacer.is_served(poll, network=number, random=self.random.random())
            self.served["stranger" if is_stranger else "others", minute] += is_served
            wait = each if is_stranger else waiting_time(pace, random=self.random.random())
            if not is_stranger or minute < ends:
                heappush(due, (now + wait, number))

    def served_a_second(self, who: str, minutes: range) -> float:
        return sum(self.served[who, minute] for minute in minutes) / len(minutes) / 60


@pytest.mark.parametrize("instances", [1, 50])
@pytest.mark.parametrize("proxies", [20, 1000])
def test_one_address_neither_slows_the_others_down_nor_takes_their_offers(proxies: int, instances: int) -> None:
    """A share that each instance counted for itself let one address at fifty set the interval to an hour.

    All its polls count up to an interval of half a minute.
    """
    flood = Flood(proxies, instances)

    flood.run(begins=20, ends=35, minutes=35, each=SECOND / 50)

    assert flood.intervals[34] <= 1.1 * max((proxies + 8) / TARGET, 30)
    assert flood.served_a_second("others", range(25, 35)) >= 0.65 * min(TARGET, proxies / 30)
    assert sum(flood.served_a_second(who, range(25, 35)) for who in ("others", "stranger")) <= 2.1 * TARGET


@pytest.mark.parametrize(("strangers", "raised"), [(5, 1.2), (16, 1.35), (64, 1.9)])
def test_many_addresses_raise_the_interval_by_a_part_that_ends_with_them(strangers: int, raised: float) -> None:
    """A fifth of the target for each let five addresses set the interval to an hour, with 20 polls a second."""
    flood = Flood(600, 5, strangers)

    flood.run(begins=20, ends=50, minutes=70, each=strangers * SECOND / 20)

    assert max(flood.intervals[minute] for minute in range(20, 60)) <= raised * 60
    assert max(flood.intervals[minute] for minute in range(60, 70)) <= 1.1 * 60
    assert flood.served_a_second("others", range(40, 50)) >= 0.6 * TARGET / raised
    assert flood.served_a_second("others", range(60, 70)) >= 0.9 * TARGET


def test_an_address_that_polls_as_another_kind_does_not_change_the_number_of_others() -> None:
    flood = Flood(600, 5, kind="badge")

    flood.run(begins=20, ends=40, minutes=40, each=SECOND / 10)

    known = {kind.proxy_type: n for kind, n in flood.paces.paces[ProxyGroup.UNRESTRICTED].known.items()}
    assert known["webext"] == pytest.approx(600, rel=0.1)
    assert known.get("badge", 0) <= 10


def test_proxies_behind_one_address_are_paced_whoever_else_polls_and_whatever_its_group() -> None:
    """A second address in the pace, such as that of the day before, ended the pacing of 600 proxies."""
    pacer, random = Pacer(MemoryPaces(), POLICY), Random(1)  # noqa: S311 - a simulation
    due = [(START + FIRST_INTERVAL * n / 600, n) for n in range(601)]
    polls: Counter[int] = Counter()
    while due[0][0] < START + 40 * MINUTE:
        now, number = heappop(due)
        minute = (now - START) // MINUTE
        pace = pacer.count(proxy(str(number), nat=Nat.UNRESTRICTED), network=minute // 20 if number else 7, now=now)
        polls[minute] += 1
        heappush(due, (now + (waiting_time(pace, random=random.random()) if number else 10 * SECOND), number))

    assert max(polls[minute] for minute in range(10, 40)) <= 1.3 * 60 * 600 / 30


def test_proxies_behind_one_address_get_what_the_others_do_not_use() -> None:
    """400 of a thousand proxies are behind a carrier's address, which counts for few of them."""
    pacer, random = Pacer(MemoryPaces(), POLICY), Random(1)  # noqa: S311 - a simulation
    due = [(START + FIRST_INTERVAL * n / 1000, n) for n in range(1000)]
    served: Counter[bool] = Counter()
    while due[0][0] < START + 30 * MINUTE:
        now, number = heappop(due)
        network = max(number, 400)
        pace = pacer.count(proxy(str(number), nat=Nat.UNRESTRICTED), network=network, now=now)
        is_served = pacer.is_served(proxy(nat=Nat.UNRESTRICTED), network=network, random=random.random())
        served[number < 400] += is_served and now >= START + 20 * MINUTE
        heappush(due, (now + waiting_time(pace, random=random.random()), number))

    assert served[True] / 400 >= 0.9 * served[False] / 600
