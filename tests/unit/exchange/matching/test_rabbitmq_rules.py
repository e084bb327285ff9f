"""RabbitMQ's rules of keys and patterns, from its documents, its tests and its wire protocol, C.1."""

import pytest

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import parse_routing_key
from tests.unit.exchange.matching.naive_topics import is_match

# Pattern, matching keys, keys that do not match.
TABLE = {
    "#": (["", "a", ".", "a.b.c", "#", "*"], []),
    "#.#": (["", "a", ".", "a.b.c"], []),
    "*.#": (["a", ".", "a.b", "a.b.c", "*", "#"], [""]),
    "#.*": (["a", ".", "a.b", "a.b.c"], [""]),
    "*": (["a", "##", "*a", "*", "#"], ["", "a.b", "."]),
    "*.*": ([".", "a.", ".a", "a.b"], ["", "a", "a.b.c", ".."]),
    "*.*.*": (["..", "a..", "a.b.c"], ["a.b", "a.b.c.d"]),
    "a.#": (["a", "a.", "a.b", "a.b.c"], ["", "ab", "b", ".a", "A"]),
    "a.*": (["a.", "a.b", "a.*", "a.#"], ["a", "a.b.c", "ab"]),
    "a.#.b": (["a.b", "a.x.b", "a.x.y.b", "a..b"], ["a", "b", "ab", "a.b.x"]),
    "#.a.#": (["a", "a.b", "x.a", "x.a.y", "a.a.a"], ["", "ab", "x"]),
    ".#": ([".", ".a", ".."], ["a", "", "a."]),
    "#.": ([".", "a.", ".."], ["a", "", ".a"]),
    ".": (["."], ["", "..", "a.", ".a"]),
    "a.*.": (["a.b.", "a.."], ["a.", "a.b", "a.b.c"]),
    "a..b": (["a..b"], ["a.b", "a.x.b"]),
    "": ([""], ["a", "."]),
    "a.b": (["a.b"], ["a", "a.B", "a.b.", ".a.b", "a.bc"]),
    "##": (["##"], ["", "a", "#", "a.b"]),
    "a#b": (["a#b"], ["a", "axb", "a.b", "a.x.b"]),
    "*a": (["*a"], ["a", "xa", "x.a"]),
    "a*": (["a*"], ["a", "ab", "a.b"]),
    "a.##.b": (["a.##.b"], ["a.b", "a.x.b"]),
    "café.温度": (["café.温度"], ["cafe.温度", "cafe\u0301.温度", "CAFÉ.温度"]),
    "a b.\n": (["a b.\n"], ["a b.", "a.b.\n"]),
}

# RabbitMQ's own test of its topic exchange: a key, and those of its patterns that match.
BOUND = (
    "a.b.c a.*.c a.#.b a.b.b.c # #.# #.b *.* a.* *.b.c a.# a.#.# b.b.c a.b.b a.b b.c *.*.* vodka.martini *.# #.*.# "
    "*.#.# #.#.# * #.b.#"
)
OWN = {
    "a.b.c": "a.b.c a.*.c # #.# *.b.c a.# a.#.# *.*.* *.# #.*.# *.#.# #.#.# #.b.#",
    "a.b": "a.#.b # #.# #.b *.* a.* a.# a.#.# a.b *.# #.*.# *.#.# #.#.# #.b.#",
    "a.b.b": "a.#.b # #.# #.b a.# a.#.# a.b.b *.*.* *.# #.*.# *.#.# #.#.# #.b.#",
    "b.c.c": "# #.# *.*.* *.# #.*.# *.#.# #.#.# #.b.#",
    "a.a.a.a.a": "# #.# a.# a.#.# *.# #.*.# *.#.# #.#.#",
    "vodka.gin": "# #.# *.* *.# #.*.# *.#.# #.#.#",
    "vodka.martini": "# #.# *.* vodka.martini *.# #.*.# *.#.# #.#.#",
    "b.b.c": "# #.# *.b.c b.b.c *.*.* *.# #.*.# *.#.# #.#.# #.b.#",
    "nothing.here.at.all": "# #.# *.# #.*.# *.#.# #.#.#",
    "oneword": "# #.# *.# #.*.# *.#.# #.#.# *",
}

FACTS = [
    (pattern, key, expected)
    for pattern, both in TABLE.items()
    for keys, expected in zip(both, (True, False), strict=True)
    for key in keys
]


@pytest.mark.parametrize(("pattern", "key", "expected"), FACTS)
def test_a_pattern_matches_what_rabbitmq_says(pattern, key, expected):
    trie: BindingTrie[str] = BindingTrie()
    trie.add(Pattern.parse(pattern), "queue")

    assert trie.matching(parse_routing_key(key)) == (["queue"] if expected else [])
    assert is_match(pattern, key) is expected  # the naive matcher of the property tests


@pytest.mark.parametrize(("key", "expected"), [*OWN.items()])
def test_all_patterns_of_rabbitmqs_own_test_at_once(key, expected):
    trie: BindingTrie[str] = BindingTrie()
    for pattern in (*BOUND.split(), ""):
        trie.add(Pattern.stored(pattern), pattern)

    assert sorted(trie.matching(parse_routing_key(key))) == sorted(expected.split())


def test_the_empty_key_in_rabbitmqs_own_test():
    trie: BindingTrie[str] = BindingTrie()
    for pattern in (*BOUND.split(), ""):
        trie.add(Pattern.stored(pattern), pattern)

    assert sorted(trie.matching(parse_routing_key(""))) == sorted(["#", "#.#", "#.#.#", ""])
