"""Benchmark of finding a topic's subscribers among many subscriptions, compared with crossbar's broker."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.parts.live import crossbar_side
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.router.matching import SubscriptionIndex
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

SIZES = (10, 100, 1_000, 10_000)
MATCHES = (MatchPolicy.PREFIX, MatchPolicy.WILDCARD)
TOPICS = 200
ROUNDS = 101


@dataclass(frozen=True, slots=True)
class Routing:
    """Microseconds per lookup of a topic that one subscription matches; `crossbar` is None if it is not installed."""

    match: str
    subscriptions: int
    ours: float
    crossbar: float | None


def measure(say: Callable[[str], None]) -> list[Routing]:
    """Measure both brokers, each in its own process."""
    try:
        crossbar_side.install()
        say("crossbar")
        theirs = crossbar_side.matching(SIZES)
    except crossbar_side.NoCrossbar as reason:
        say(f"without crossbar: {reason}")
        theirs = {}
    found = []
    for match in MATCHES:
        for size in SIZES:
            say(f"{size:,} {match} subscriptions")
            found.append(Routing(match, size, _measured(match, size), theirs.get(match, {}).get(str(size))))
    return found


def _measured(match: MatchPolicy, size: int) -> float:
    index: SubscriptionIndex[int] = SubscriptionIndex()
    for number in range(size):
        uri = f"trial.n{number}." if match is MatchPolicy.PREFIX else f"trial..n{number}"
        index.add(TopicPattern.parse(uri, match), number)
    numbers = [round(step * (size - 1) / (TOPICS - 1)) for step in range(TOPICS)]
    topics = [RoutingKey(f"trial.n{n}.log" if match is MatchPolicy.PREFIX else f"trial.log.n{n}") for n in numbers]
    assert all(index.matching(topic) == [number] for topic, number in zip(topics, numbers, strict=True))
    return statistics.median(_round(index, topics) for _ in range(ROUNDS)) * 1e6


def _round(index: SubscriptionIndex[int], topics: list[RoutingKey]) -> float:
    begun = time.perf_counter()
    for topic in topics:
        index.matching(topic)
    return (time.perf_counter() - begun) / len(topics)
