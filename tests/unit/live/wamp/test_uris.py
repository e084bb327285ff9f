"""Validation of URIs."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import InvalidUri, parse_procedure, parse_topic

# Basic profile, «URIs»: the specification's regular expressions.
LOOSE = re.compile(r"([^\s\.#]+\.)*([^\s\.#]+)")
LOOSE_EMPTY = re.compile(r"(([^\s\.#]+\.)|\.)*([^\s\.#]+)?")

uris = st.text(st.sampled_from("ab.#* \n\u2003\x1cé"), max_size=8)


def is_accepted(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except InvalidUri:
        return False
    return True


@given(uris)
def test_topics_and_procedures_are_loose_uris(text: str) -> None:
    assert is_accepted(parse_topic, text) == bool(LOOSE.fullmatch(text))
    assert is_accepted(parse_procedure, text) == bool(LOOSE.fullmatch(text))
    assert is_accepted(TopicPattern.parse, text) == bool(LOOSE.fullmatch(text))


@given(uris, st.sampled_from([MatchPolicy.PREFIX, MatchPolicy.WILDCARD]))
def test_patterns_may_have_empty_components(text: str, match: MatchPolicy) -> None:
    assert is_accepted(lambda uri: TopicPattern.parse(uri, match), text) == bool(LOOSE_EMPTY.fullmatch(text))


@pytest.mark.parametrize(
    "text", ["zzzzz-4zz18-0123456789abcde", "com.myapp.topic.emergency-low", "A.B", "a.*.b", "*", "ärger.é", "com.wamp"]
)
def test_topics_of_real_clients_are_accepted(text: str) -> None:
    assert parse_topic(text) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "topic '' has an empty component, as only patterns may"),
        ("a..b", "topic 'a..b' has an empty component, as only patterns may"),
        ("a b", "topic 'a b' has white space"),
        ("a.#", "topic 'a.#' has '#', which is reserved for routers"),
        ("wamp", "topic 'wamp' begins with 'wamp', which is reserved for WAMP"),
        ("wamp.a", "topic 'wamp.a' begins with 'wamp', which is reserved for WAMP"),
        ("\0YQ==", "topic '\\x00YQ==' begins with U+0000, which marks binary values in WAMP"),
        ("\ud800", "topic '\\ud800' has half of a surrogate pair, which UTF-8 cannot encode"),
    ],
)
def test_an_invalid_topic_is_refused_with_its_problem(text: str, problem: str) -> None:
    with pytest.raises(InvalidUri) as refused:
        parse_topic(text)

    assert str(refused.value) == problem


def test_a_topic_has_the_length_limit_of_a_routing_key() -> None:
    assert parse_topic("a" * 255)
    with pytest.raises(InvalidUri, match="has 256 bytes of UTF-8; at most 255 are allowed"):
        parse_topic("a" * 256)


def test_reserved_uris_may_be_subscribed_to_and_called() -> None:
    assert TopicPattern.parse("wamp.session.on_join").uri == "wamp.session.on_join"
    assert parse_procedure("wamp.session.count") == "wamp.session.count"
