"""The number of keys routed in a second, compared with kombu's topic exchange and plain regexes."""

import gc
import random
import re
import statistics
import time
import tracemalloc
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

from kombu.transport.virtual.exchange import TopicExchange

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import RoutingKey

SIZES = (10, 1_000, 100_000)
KEYS = 100_000
ROUNDS = 5
COMPARED = 1_000  # with a table of this size, kombu is the reference
PER_OFFICE = 5
DAYS, PRODUCTS = 4, 4
# A walk over all bindings takes the same time for each key, so a part of the keys shows the rate.
WALKED = 1_000_000
CHECKED = 100
SIDES = ("ours", "kombu", "regexes")

Side = Callable[[Sequence[RoutingKey]], Collection[object]]


@dataclass(frozen=True, slots=True)
class Routing:
    """The median number of keys a second with this number of bindings, and the memory of one binding."""

    bindings: int
    ours: float
    kombu: float
    regexes: float
    matches: float
    """The mean number of bindings that match a key."""
    bytes_per_binding: float


def measure(say: Callable[[str], None]) -> list[Routing]:
    """Measure all sides round by round, so that noise of the machine affects each."""
    found = []
    for size in SIZES:
        say(f"{size:,} bindings")
        found.append(_measured(size))
    return found


def patterns(size: int, source: random.Random) -> Iterator[str]:
    """Yield bindings as weather offices use them: two literal, two with `*`, one with `#`."""
    for office in range(size // PER_OFFICE):
        yield f"v03.{_day(source)}.office{office}.{_product(source)}"
        yield f"v03.{_day(source)}.office{office}.{_product(source)}.urgent"
        yield f"v03.*.office{office}.{_product(source)}"
        yield f"v03.{_day(source)}.office{office}.*"
        yield f"v03.{_day(source)}.office{office}.#" if office % 2 else f"v03.#.office{office}.urgent"


def keys(size: int, source: random.Random) -> list[RoutingKey]:
    """Return keys of those offices, each of which matches some bindings of its own office only."""
    offices = size // PER_OFFICE
    return [RoutingKey(f"v03.{_day(source)}.office{source.randrange(offices)}.{_product(source)}") for _ in range(KEYS)]


def _day(source: random.Random) -> str:
    return f"2026112{source.randrange(DAYS)}"


def _product(source: random.Random) -> str:
    return f"product{source.randrange(PRODUCTS)}"


def _measured(size: int) -> Routing:
    with ExitStack() as stack:
        sides = {name: stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"))) for name in SIDES}
        bytes_per_binding = {name: side.submit(_prepare, name, size).result() for name, side in sides.items()}["ours"]
        matches = _check([side.submit(_found).result() for side in sides.values()])
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(ROUNDS):
            for name, side in list(sides.items())[:: 1 if number % 2 else -1]:
                rates[name].append(side.submit(_rate).result())
    medians = {name: statistics.median(found) for name, found in rates.items()}
    return Routing(size, **medians, matches=matches, bytes_per_binding=bytes_per_binding)


@dataclass(slots=True)
class _Prepared:
    """The tables of one side, in a process of its own, so that other tables do not fill its caches."""

    side: Side
    keys: Sequence[RoutingKey]


_prepared: list[_Prepared] = []


def _prepare(name: str, size: int) -> float:
    """Build a side's table; return the bytes that ours needs for each binding. Targets are numbers."""
    source = random.Random(size)  # the same table in every run and process
    bound, sent = list(patterns(size, source)), keys(size, source)
    walked = sent[: max(WALKED // size, 10)]
    if name != "ours":
        _prepared.append(_Prepared(_kombu(bound) if name == "kombu" else _regexes(bound), walked))
        return 0.0
    trie, bytes_per_binding = _weighed(bound)
    _prepared.append(_Prepared(_ours(trie), sent))
    return bytes_per_binding


def _weighed(bound: Sequence[str]) -> tuple[BindingTrie[int], float]:
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    watched = _tree(bound)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del watched
    return _tree(bound), (after - before) / len(bound)


def _tree(bound: Sequence[str]) -> BindingTrie[int]:
    trie: BindingTrie[int] = BindingTrie()
    for target, pattern in enumerate(bound):
        trie.add(Pattern.parse(pattern), target)
    return trie


def _found() -> list[list[object]]:
    """Return the queues that this process's side finds for the first keys."""
    (one,) = _prepared
    return [sorted(one.side([key]), key=str) for key in one.keys[:CHECKED]]


def _check(found: Sequence[Sequence[Collection[object]]]) -> float:
    """Check that all sides find the same queues for every key; return their mean number."""
    checked = min(len(one) for one in found)
    assert all(one[:checked] == found[0][:checked] for one in found)
    return sum(len(queues) for queues in found[0]) / len(found[0])


def _rate() -> float:
    (one,) = _prepared
    started = time.process_time()
    one.side(one.keys)
    return len(one.keys) / (time.process_time() - started)


def _ours(trie: BindingTrie[int]) -> Side:
    def route(some: Sequence[RoutingKey]) -> Collection[object]:
        found: Collection[object] = ()
        for key in some:
            found = trie.matching(key)
        return found

    return route


def _kombu(bound: Sequence[str]) -> Side:
    exchange: Any = TopicExchange(SimpleNamespace())  # kombu has no types
    table = [exchange.prepare_bind(target, "xpublic", pattern, {}) for target, pattern in enumerate(bound)]

    def route(some: Sequence[RoutingKey]) -> Collection[object]:
        found: Collection[object] = ()
        for key in some:
            found = exchange.lookup(table, "xpublic", key, None)
        return found

    return route


def _regexes(bound: Sequence[str]) -> Side:
    """Return the straightforward solution: each pattern compiled once, each tried for every key."""
    table = [(re.compile(_regex(pattern)).fullmatch, target) for target, pattern in enumerate(bound)]

    def route(some: Sequence[RoutingKey]) -> Collection[object]:
        found: Collection[object] = ()
        for key in some:
            found = [target for matches, target in table if matches(key)]
        return found

    return route


def _regex(pattern: str) -> str:
    """Return a regex for the patterns of this benchmark; AMQP's full rules require more."""
    words = {"*": r"[^.]*", "#": r".*"}
    return r"\.".join(words.get(word, re.escape(word)) for word in pattern.split("."))
