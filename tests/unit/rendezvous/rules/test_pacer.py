"""The pacer of polls: however many proxies there are, they poll as often as the target says."""

from collections import Counter
from dataclasses import replace
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

SECOND = timedelta(seconds=1)
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


def test_disobedient_proxies_are_served_as_often_as_the_target() -> None:
    paces = MemoryPaces()
    pacer = Pacer(paces, POLICY)
    served = 0
    for number in range(60_000):  # a thousand a second
        now = START + number * SECOND / 1000
        poll = proxy(str(number), nat=Nat.UNRESTRICTED)
        pacer.count(poll, network=None, now=now)
        served += now >= START + 40 * SECOND and pacer.is_served(poll, network=None, random=number * 7919 % 1000 / 1000)

    assert served == pytest.approx(2 * TARGET * 20, rel=0.2)


def test_an_instance_shares_its_polls_each_ten_seconds() -> None:
    paces = MemoryPaces()
    pacer = Pacer(paces, POLICY)
    for seconds in range(11):
        pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START + seconds * SECOND)

    assert sum(paces.paces[ProxyGroup.UNRESTRICTED].polls.values()) == 11


def test_polls_of_a_period_that_another_instance_ended_are_not_counted_in_the_next() -> None:
    paces = MemoryPaces()
    pacer = Pacer(paces, POLICY)
    pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START)
    pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START + SECOND)
    stored = paces.paces[ProxyGroup.UNRESTRICTED]
    paces.paces[ProxyGroup.UNRESTRICTED] = replace(stored, since=START + 5 * SECOND, polls={})

    pace = pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START + 10 * SECOND)

    assert pace.polls == {}


def test_the_pace_of_the_faster_of_two_instances_stays() -> None:
    paces = MemoryPaces()
    pacer = Pacer(paces, POLICY)
    pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START)
    paces.replace = lambda *_, **__: False

    pace = pacer.count(proxy(nat=Nat.UNRESTRICTED), network=None, now=START + 30 * SECOND)

    assert pace.interval == FIRST_INTERVAL


def test_a_network_that_floods_the_stage_is_neither_counted_nor_served_beyond_its_share() -> None:
    """Else the others would poll less often, and would get «no match» as often as the stranger."""
    pacer = Pacer(MemoryPaces(), POLICY)
    poll = proxy(nat=Nat.UNRESTRICTED)
    pacer.count(poll, network=7, now=START)

    for _ in range(1000):
        pacer.count(poll, network=7, now=START + SECOND)
    pacer.count(poll, network=8, now=START + SECOND)

    assert pacer.uncounted[ProxyGroup.UNRESTRICTED].total() == TARGET * 10 / 5 + 1
    assert not pacer.is_served(poll, network=7, random=0)
    assert pacer.is_served(poll, network=8, random=0)
