"""The validity of routing keys and of the patterns of new bindings."""

import pytest

from signalbox.exchange.model.patterns import InvalidPattern, Pattern
from signalbox.exchange.model.topics import InvalidRoutingKey, parse_routing_key, shown, words_of


@pytest.mark.parametrize(
    ("topic", "words"),
    [("", []), ("a", ["a"]), (".", ["", ""]), ("a.", ["a", ""]), (".a", ["", "a"]), ("a..b", ["a", "", "b"])],
)
def test_the_empty_text_has_no_words_and_a_lone_dot_two_empty_ones(topic, words):
    assert words_of(topic) == words


@pytest.mark.parametrize("text", ["", "a" * 255, "é" * 127, "." * 255, "#.#.#", "*", "a b\n\x00"])
def test_every_text_within_the_size_limit_is_a_routing_key(text):
    assert parse_routing_key(text) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a" * 256, "has 256 bytes of UTF-8; at most 255 are allowed"),
        ("é" * 128, "has 256 bytes of UTF-8; at most 255 are allowed"),
        ("\ud800", "has half of a surrogate pair, which UTF-8 cannot encode"),
        ("\0YQ==", "begins with U+0000, which marks binary values in WAMP"),
    ],
    ids=["256 characters", "128 characters of two bytes", "half a pair", "a mark"],
)
def test_the_limit_is_in_bytes_of_utf8(text, problem):
    with pytest.raises(InvalidRoutingKey) as key:
        parse_routing_key(text)
    with pytest.raises(InvalidPattern) as pattern:
        Pattern.parse(text)

    assert str(key.value) == f"routing key {text!r} {problem}"
    assert str(pattern.value) == f"pattern {text!r} {problem}"


@pytest.mark.parametrize(
    "text", ["", "a.b.c", "*.*.*", "#", "a.#", "#.#", "#.a.#", "a#b", "##.##.##", "#a.#b.#c", "a" * 255]
)
def test_a_new_binding_may_have_two_hashes(text):
    """RabbitMQ, unit_topic_binding_validation_SUITE: `#` counts only as the whole word."""
    assert str(Pattern.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "times"), [("#.#.#", 3), ("#.*.#.*.#", 3), ("a.#.b.#.c.#", 3), (".".join(["#"] * 128), 128)]
)
def test_a_third_hash_in_a_new_binding_is_refused(text, times):
    with pytest.raises(InvalidPattern) as refused:
        Pattern.parse(text)

    assert str(refused.value) == f"pattern {text!r} uses '#' {times} times; at most 2 are allowed in a new binding"


def test_all_problems_of_a_pattern_are_reported():
    with pytest.raises(InvalidPattern, match=r"has 257 bytes .*; and it uses '#' 129 times"):
        Pattern.parse(".".join(["#"] * 129))


def test_a_stored_pattern_may_have_more():
    assert Pattern.stored("#.#.#").words == ("#", "#", "#")


def test_a_quoted_value_is_cut_where_no_key_or_pattern_ends():
    assert shown("a" * 255) == f"'{'a' * 255}'"
    assert shown("a" * 1000) == f"'{'a' * 299}…"
