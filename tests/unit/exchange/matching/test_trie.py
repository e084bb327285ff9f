"""The trie of bindings: each matching target once, as the rules say, in bounded time."""

import sys
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import RoutingKey
from tests.unit.exchange.matching.naive_topics import is_match

words = st.sampled_from(["a", "b", "", "*", "#", "##", "*a"])
patterns = st.lists(words, max_size=6).map(".".join)
keys = st.lists(words, max_size=7).map(".".join)
bindings = st.tuples(patterns, st.sampled_from(["q1", "q2", "q3"]))


def trie_of(*bound: tuple[str, str]) -> BindingTrie[str]:
    trie: BindingTrie[str] = BindingTrie()
    for pattern, target in bound:
        trie.add(Pattern.stored(pattern), target)
    return trie


@given(st.lists(bindings, max_size=12), keys)
def test_the_tree_finds_what_the_rules_find_and_each_target_once(bound, key):
    found = trie_of(*bound).matching(RoutingKey(key))

    assert sorted(found) == sorted({target for pattern, target in bound if is_match(pattern, key)})


@given(st.lists(st.tuples(st.booleans(), bindings), max_size=20), keys)
def test_the_remaining_bindings_route_after_any_changes(steps, key):
    trie: BindingTrie[str] = BindingTrie()
    left: set[tuple[str, str]] = set()
    for bind, (pattern, target) in steps:
        if bind:
            trie.add(Pattern.stored(pattern), target)
            left.add((pattern, target))
        else:
            trie.remove(Pattern.stored(pattern), target)
            left.discard((pattern, target))

    assert set(trie.matching(RoutingKey(key))) == {target for pattern, target in left if is_match(pattern, key)}


@given(st.lists(bindings, max_size=12), st.randoms())
def test_a_tree_from_which_all_is_unbound_holds_nothing(bound, random):
    trie = trie_of(*bound)
    random.shuffle(bound)

    for pattern, target in bound:
        trie.remove(Pattern.stored(pattern), target)

    assert not trie


def test_a_pattern_has_room_for_many_targets_each_once():
    queues = [f"q{number}" for number in range(20)]
    trie = trie_of(*(("a.#", queue) for queue in queues * 2))

    assert trie.matching(RoutingKey("a.b")) == queues

    for queue in queues[1:]:
        trie.remove(Pattern.parse("a.#"), queue)
    assert trie.matching(RoutingKey("a.b")) == queues[:1]


def test_any_hashable_target_can_be_bound():
    trie: BindingTrie[tuple[str, int]] = BindingTrie()
    trie.add(Pattern.parse("a"), ("session", 1))
    trie.add(Pattern.parse("*"), ("session", 2))
    trie.add(Pattern.parse("#"), ("session", 1))

    assert set(trie.matching(RoutingKey("a"))) == {("session", 1), ("session", 2)}


def test_fifteen_hashes_against_31_words():
    """RabbitMQ's own case: a matcher without memory of visited states does not finish."""
    trie = trie_of(("#.a." * 15 + "b", "q"), ("#.a." * 15 + "#", "all"))

    assert trie.matching(RoutingKey(".".join(["a"] * 31))) == ["all"]


def test_as_many_hashes_as_fit_against_as_many_words_as_fit():
    trie = trie_of(("#.a." * 63 + "b", "q"), ("#." * 127 + "#", "all"))

    assert trie.matching(RoutingKey(".".join(["a"] * 128))) == ["all"]


def test_stars_in_a_key_are_met_once():
    trie = trie_of((".".join(["*"] * 128), "q"))

    assert trie.matching(RoutingKey(".".join(["*"] * 128))) == ["q"]


@pytest.mark.parametrize("before", [("#",), ("a", "#"), ("#", "a", "#"), ("*",)])
@pytest.mark.parametrize("end", ["a", "z"])
def test_no_node_is_visited_twice_however_often_a_key_repeats_a_word(before, end):
    """The keys of an attacker, and some of the 20,000 bindings that one user's hundred queues may have."""
    patterns = [(*before, *words, end) for words in product("a*", repeat=9)]
    trie = trie_of(*((".".join(pattern), "q") for pattern in patterns))
    nodes = len({pattern[:length] for pattern in patterns for length in range(len(pattern) + 1)})
    calls: Counter[str] = Counter()

    sys.setprofile(lambda _frame, event, _argument: calls.update([event]))
    found = trie.matching(RoutingKey(".".join(["a"] * 126)))
    sys.setprofile(None)

    assert calls["c_call"] < 6 * nodes
    assert found == (["q"] if end == "a" and "#" in before else [])
