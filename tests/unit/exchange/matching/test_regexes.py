"""Regular expressions of binding patterns, which find what the matcher matches."""

import itertools
import re

import pytest

from signalbox.exchange.matching.regexes import framed, pattern_regex
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern

WORDS = ("", "a", "a\n", "<", "^[(|)]$", "\\", "*")
TOPICS = [".".join(words) for length in range(4) for words in itertools.product(WORDS, repeat=length)]


@pytest.mark.parametrize(
    "text", ["", "#", "*", "a", "#.a", "a.#", "*.#", "#.*.#", "a.*", "..", "^[(|)]$.#", "\\.*", "a\n"]
)
def test_an_expression_finds_the_topics_that_the_pattern_matches(text):
    trie = BindingTrie()
    trie.add(Pattern.parse(text), "queue")

    expression = re.compile(pattern_regex(Pattern.parse(text)))

    for topic in TOPICS:
        assert bool(expression.search(framed(topic))) == bool(trie.matching(topic)), topic
