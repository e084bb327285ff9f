"""Regular expressions of the patterns of grants, which find what their coverage matches."""

import itertools
import re

import pytest

from signalbox.exchange.matching.regexes import framed
from signalbox.live.admin.coverage import matches
from signalbox.live.admin.principals import EVERYONE, Subject
from signalbox.live.admin.regexes import grant_regex
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

WORDS = ("", "a", "ab", "an%2En", "<", "$")
TOPICS = [".".join(words) for length in range(4) for words in itertools.product(WORDS, repeat=length)]
EXACT, PREFIX, WILDCARD = MatchPolicy


@pytest.mark.parametrize(
    ("match", "uri"),
    [
        (EXACT, "a"),
        (EXACT, "a.ab"),
        (EXACT, "a.{user}"),
        (PREFIX, ""),
        (PREFIX, "a"),
        (PREFIX, "a."),
        (PREFIX, "."),
        (PREFIX, "a.$"),
        (PREFIX, "{user}.a"),
        (WILDCARD, ""),
        (WILDCARD, "a."),
        (WILDCARD, ".a."),
        (WILDCARD, "{user}..a"),
    ],
)
def test_an_expression_finds_the_topics_that_a_users_grant_matches(match, uri):
    pattern = TopicPattern(match, uri)

    expression = re.compile(grant_regex(pattern, "an.n"))

    for topic in TOPICS:
        assert bool(expression.search(framed(topic))) == matches(pattern, topic, Subject.of("an.n")), topic


@pytest.mark.parametrize(("uri", "principal"), [("a.{group}", "ann"), ("a.{user}", "@lab"), ("a.{user}", EVERYONE)])
def test_a_word_that_depends_on_the_session_is_any_name(uri, principal):
    expression = re.compile(grant_regex(TopicPattern(EXACT, uri), principal))

    assert [topic for topic in TOPICS if expression.search(framed(topic))] == [f"a.{word}" for word in WORDS if word]
