"""The pacer of polls: however many proxies there are, they poll as often as the target says."""

from collections import Counter
from dataclasses import dataclass, field
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
        assert pacer.is_served(poll, network=number % 200, now=now, random=0)


def test_disobedient_proxies_are_served_as_often_as_the_target() -> None:
    paces = MemoryPaces()
    pacer = Pacer(paces, POLICY)
    served = 0
    for number in range(60_000):  # a thousand a second
        now = START + number * SECOND / 1000
        poll = proxy(str(number), nat=Nat.UNRESTRICTED)
        pacer.count(poll, network=None, now=now)
        served += now >= START + 40 * SECOND and pacer.is_served(
            poll, network=None, now=now, random=number * 7919 % 1000 / 1000
        )

    assert served == pytest.approx(2 * TARGET * 20, rel=0.2)


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
    """Obedient proxies at some instances, and one address that polls at fifty others or at one, without a pause."""

    proxies: int
    instances: int
    paces: MemoryPaces = field(default_factory=MemoryPaces)
    random: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - a simulation
    served: Counter[tuple[str, int]] = field(default_factory=Counter)

    def run(self, *, begins: int, minutes: int, each: timedelta) -> None:
        pacers = [Pacer(self.paces, POLICY) for _ in range(self.instances)]
        due = [(START + FIRST_INTERVAL * n / self.proxies, n) for n in range(1, self.proxies + 1)]
        due.append((START + begins * MINUTE, 0))
        heapify(due)
        turn = 0
        while due[0][0] < START + minutes * MINUTE:
            now, number = heappop(due)
            turn += not number
            pacer = pacers[turn % self.instances] if not number else self.random.choice(pacers)
            poll = proxy(str(number), nat=Nat.UNRESTRICTED)
            pace = pacer.count(poll, network=number, now=now)
            is_served = pacer.is_served(poll, network=number, now=now, random=self.random.random())
            self.served["stranger" if not number else "others", (now - START) // MINUTE] += is_served
            wait = waiting_time(pace, random=self.random.random()) if number else each
            heappush(due, (now + wait, number))

    def interval(self) -> float:
        return self.paces.paces[ProxyGroup.UNRESTRICTED].interval.total_seconds()

    def served_a_second(self, who: str, minutes: range) -> float:
        return sum(self.served[who, minute] for minute in minutes) / len(minutes) / 60


@pytest.mark.parametrize("instances", [1, 50])
@pytest.mark.parametrize("proxies", [20, 1000])
def test_one_address_neither_slows_the_others_down_nor_has_more_than_its_share(proxies: int, instances: int) -> None:
    """A share that each instance counted for itself let one address at fifty set the interval to an hour."""
    flood = Flood(proxies, instances)

    flood.run(begins=20, minutes=35, each=SECOND / 50)

    assert flood.interval() <= 1.5 * max(proxies / TARGET, 1)
    assert flood.served_a_second("others", range(25, 35)) >= 0.6 * TARGET
    assert flood.served_a_second("stranger", range(25, 35)) <= 0.3 * TARGET
