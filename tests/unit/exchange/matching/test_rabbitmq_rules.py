"""RabbitMQ's rules of keys and patterns, from its documents, its tests and its wire protocol, C.1."""

import json
from pathlib import Path

import pytest

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import parse_routing_key
from tests.unit.exchange.matching.naive_topics import is_match

RABBITMQ = json.loads(Path(__file__).with_name("rabbitmq.json").read_text(encoding="utf-8"))
# Pattern, matching keys, keys that do not match.
TABLE: dict[str, list[list[str]]] = RABBITMQ["rules"]
# RabbitMQ's own test of its topic exchange: its patterns, and by key those that match.
BOUND: list[str] = RABBITMQ["bound"]
OWN: dict[str, list[str]] = RABBITMQ["matching"]
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
    for pattern in BOUND:
        trie.add(Pattern.stored(pattern), pattern)

    assert sorted(trie.matching(parse_routing_key(key))) == sorted(expected)
