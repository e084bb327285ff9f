"""The routing graph against a naive reading of the rules of exchanges, bindings and alternates."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.matching.graph import Routes, RoutingGraph
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import Binding, ExchangeRecord, ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.exchange.matching.naive_topics import is_match
from tests.unit.exchange.routing.naive_sqs import START

EXCHANGES = [ExchangeName(name) for name in ("xa", "xb", "xc", "xd")]
WORDS = st.sampled_from(["a", "b", ""])
KEYS = st.lists(WORDS, max_size=3).map(".".join)
PATTERNS = st.lists(st.one_of(WORDS, st.sampled_from(["*", "#"])), max_size=3).map(".".join)
TARGETS = st.one_of(
    st.sampled_from(["q1", "q2", "q3"]).map(lambda name: ResourceRef(ResourceKind.QUEUE, name)),
    st.sampled_from(EXCHANGES).map(lambda name: ResourceRef(ResourceKind.EXCHANGE, name)),
)
BOUND = st.builds(Binding, st.sampled_from(EXCHANGES), TARGETS, PATTERNS.map(Pattern.stored))
ALTERNATES = st.dictionaries(st.sampled_from(EXCHANGES), st.sampled_from(EXCHANGES))


def exchange(name: str, *, alternate: str | None = None, version: int = 1) -> ExchangeRecord:
    return ExchangeRecord(
        ExchangeName(name), None, START, alternate=ExchangeName(alternate) if alternate else None, version=version
    )


def bound(pattern: str, *, queue: str = "", to: str = "") -> Binding:
    target = ResourceRef(ResourceKind.QUEUE, queue) if queue else ResourceRef(ResourceKind.EXCHANGE, to)
    return Binding(ExchangeName("any"), target, Pattern.stored(pattern))


def routes(graph: RoutingGraph, key: str) -> Routes:
    return graph.routes(ExchangeName("xa"), RoutingKey(key))


def naive_queues(root: ExchangeName, key: str, bindings: list[Binding], alternates: dict, around: set) -> set[str]:
    """Follow all routes from an exchange that lead into none of `around` until no new resource is found."""
    exchanges, queues = {root}, set()
    while True:
        before = len(exchanges) + len(queues)
        for name in list(exchanges):
            matching = [one.target for one in bindings if one.exchange == name and is_match(str(one.pattern), key)]
            queues |= {target.name for target in matching if target.kind is ResourceKind.QUEUE}
            leads_to = {target.name for target in matching if target.kind is ResourceKind.EXCHANGE}
            if not matching and name in alternates:
                leads_to = {alternates[name]}
            exchanges |= leads_to - around
        if len(exchanges) + len(queues) == before:
            return queues


@given(st.lists(BOUND, max_size=12), ALTERNATES, KEYS, st.sets(st.sampled_from(EXCHANGES)))
def test_a_message_reaches_the_queues_that_the_rules_say_each_once(bindings, alternates, key, around) -> None:
    graph = RoutingGraph()
    for name in EXCHANGES:
        own = [one for one in bindings if one.exchange == name]
        graph.put(exchange(name, alternate=alternates.get(name)), own)

    ways = graph.ways(EXCHANGES[0], RoutingKey(key))
    found = ways.routes(ways.passed(EXCHANGES[0], around=around))

    assert sorted(found.queues) == sorted(naive_queues(EXCHANGES[0], key, bindings, alternates, around))


def test_without_a_binding_a_message_goes_nowhere_and_an_unknown_exchange_leads_nowhere() -> None:
    graph = RoutingGraph()
    assert routes(graph, "a") == Routes((), by_alternate=False)

    graph.put(exchange("xa"), [bound("a", to="gone"), bound("b", queue="q")])

    assert routes(graph, "a") == Routes((), by_alternate=False)


def test_an_alternate_gets_what_no_binding_matches_and_nothing_else() -> None:
    graph = RoutingGraph()
    graph.put(exchange("xa", alternate="xb"), [bound("a", queue="q1")])
    graph.put(exchange("xb"), [bound("#", queue="q2")])

    assert routes(graph, "a") == Routes(("q1",), by_alternate=False)
    assert routes(graph, "b") == Routes(("q2",), by_alternate=True)


def test_a_binding_to_an_exchange_that_drops_the_message_is_a_match_as_in_rabbitmq() -> None:
    """rabbit_exchange:route uses the alternate of an exchange only when that exchange itself matched nothing."""
    graph = RoutingGraph()
    graph.put(exchange("xa", alternate="xb"), [bound("a", to="xc")])
    graph.put(exchange("xb"), [bound("#", queue="q2")])
    graph.put(exchange("xc"), [])

    assert routes(graph, "a") == Routes((), by_alternate=False)


def test_an_exchange_bound_to_itself_does_no_harm() -> None:
    graph = RoutingGraph()
    graph.put(exchange("xa", alternate="xa"), [bound("#", to="xa"), bound("a", queue="q")])

    assert routes(graph, "a") == Routes(("q",), by_alternate=False)
    assert graph.reachable(ExchangeName("xa")) == {"xa"}


def test_an_exchange_depends_on_all_that_it_leads_to_there_or_not() -> None:
    graph = RoutingGraph()
    graph.put(exchange("xa", alternate="xb"), [bound("a", to="xc"), bound("a", queue="q")])
    graph.put(exchange("xc"), [bound("a", to="xd"), bound("b", to="xa")])

    assert graph.reachable(ExchangeName("xa")) == {"xa", "xb", "xc", "xd"}


def test_an_exchange_is_known_in_one_version_until_it_is_forgotten() -> None:
    graph, found = RoutingGraph(), exchange("xa", version=2)
    graph.put(found, [bound("a", queue="q")])

    assert graph.knows(found)
    assert not graph.knows(replace(found, version=3))
    assert not graph.knows(replace(found, created_at=START.replace(year=2027)))  # another of the same name

    graph.forget(found.name)
    graph.forget(found.name)

    assert not graph.knows(found)
    assert routes(graph, "a").queues == ()


def test_the_graph_forgets_the_exchanges_that_were_not_used_for_the_longest_time_by_the_words_of_their_patterns() -> (
    None
):
    graph = RoutingGraph(maximum=10, of_all=20)
    for name in EXCHANGES:
        graph.put(exchange(name), [bound("a.b.c.d", queue="q1"), bound("a.b.c", queue="q2"), bound("", queue="q3")])
        graph.use([name, ExchangeName("xa"), ExchangeName("gone")])

    assert [graph.knows(exchange(name)) for name in EXCHANGES] == [True, False, False, True]

    graph.use(EXCHANGES)
    graph.put(exchange("xb"), [bound("a", queue="q")])
    graph.use(["xb", "xa"])

    assert [graph.knows(exchange(name)) for name in EXCHANGES] == [True, True, False, True]


def test_an_exchange_of_more_words_than_the_maximum_is_held_by_first_words() -> None:
    graph, read = RoutingGraph(maximum=10), []

    def bindings():
        for number in range(5):
            read.append(number)
            yield bound(f"{number}.a.b.c", queue="q")

    graph.put(exchange("xa"), bindings())

    assert read == [0, 1, 2]
    assert graph.missing(ExchangeName("xa"), [RoutingKey("4.a")]) == {"4", "*", "#", ""}


@pytest.mark.parametrize(("count", "is_kept"), [(5, True), (6, False)])
def test_known_first_words_count_as_words_and_are_dropped_if_they_take_half_of_the_maximum(
    count: int, *, is_kept: bool
) -> None:
    graph, name, places = RoutingGraph(maximum=10), ExchangeName("xa"), [f"{number}\n" for number in range(count)]
    graph.put(exchange("xa"), [bound("0.a.b.c", queue="q")] * 3)
    graph.add_first_words(name, places)
    graph.add(name, "0", [bound("0.a.b.c", queue="q"), bound("0.d", queue="q")])
    assert graph.is_full(name)

    graph.empty(name)

    assert (graph.unknown(name, [RoutingKey("1.a")]) is None) is is_kept
    assert graph.missing(name, [RoutingKey("0.a")]) == {"0", "*", "#", ""}


def test_the_former_version_of_an_exchange_is_dropped_before_the_next_one_is_read() -> None:
    graph, known = RoutingGraph(), []
    graph.put(exchange("xa"), [bound("a", queue="q")])

    def bindings():
        known.append(graph.knows(exchange("xa")))
        yield bound("b", queue="q")

    graph.put(exchange("xa", version=2), bindings())

    assert known == [False]
    assert (routes(graph, "a").queues, routes(graph, "b").queues) == ((), ("q",))
