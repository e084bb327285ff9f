"""Coverage of topics and subscriptions by grants with placeholders, against a model that expands every name."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.rights.coverage import GROUP, USER, beginning, check_placeholders, covers, matches, may_overlap
from signalbox.live.rights.principals import NOBODY, GroupName, Subject, word_of
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import InvalidUri

# All topics of up to three components: a difference between patterns shows in one of them.
WORDS = ["a", "b", "ab", "ann", "g%2Eh"]
TOPICS = [RoutingKey(".".join(words)) for length in (1, 2, 3) for words in product(WORDS, repeat=length)]
names = st.sampled_from(["ann", "a", "x"])
groups = st.frozensets(st.sampled_from([GroupName(name) for name in ("a", "ab", "g.h", "y")]))
plain = st.lists(st.sampled_from(["a", "b", "ab", ""]), min_size=1, max_size=3).map(".".join)
placed = st.lists(st.sampled_from(["a", "b", "", USER, GROUP, GROUP]), min_size=1, max_size=3)
POLICIES = [MatchPolicy.PREFIX, MatchPolicy.WILDCARD]


def is_valid(pattern: TopicPattern) -> bool:
    try:
        check_placeholders(TopicPattern.parse(pattern.uri, pattern.match))
    except InvalidUri:
        return False
    return True


grants = st.builds(TopicPattern, st.sampled_from(MatchPolicy), placed.map(".".join)).filter(is_valid)
subscriptions = st.builds(TopicPattern, st.sampled_from(POLICIES), plain) | st.builds(
    TopicPattern, st.just(MatchPolicy.EXACT), st.sampled_from(TOPICS)
)


def expanded(pattern: TopicPattern, name: str, of: frozenset[GroupName]) -> list[TopicPattern]:
    """Return one pattern for each choice of a group in each place."""
    choices = {USER: [word_of(name)], GROUP: [word_of(one) for one in sorted(of)]}
    words = [choices.get(word, [word]) for word in pattern.uri.split(".")]
    return [TopicPattern(pattern.match, ".".join(chosen)) for chosen in product(*words)]


def covers_plainly(grant: TopicPattern, wanted: TopicPattern) -> bool:
    """Return whether a pattern without placeholders covers another, by every text that could follow."""
    suffixes = ["", "x", ".x", "x.y", ".x.y"]
    fills = ["a", "ab", "zz"]
    if wanted.match is MatchPolicy.PREFIX:
        # A wildcard or exact grant never covers a prefix: topics may have any number of words.
        topics = [wanted.uri + suffix for suffix in (*suffixes, ".x.y.z.z.z")]
    else:
        words = [[word] if word else fills for word in wanted.uri.split(".")]
        topics = [".".join(chosen) for chosen in product(*words)]
        topics = topics if wanted.match is MatchPolicy.WILDCARD else [wanted.uri]
    return all(grant.matches(RoutingKey(topic)) for topic in topics)


@given(grants, names, groups, st.sampled_from(TOPICS))
def test_a_pattern_matches_what_one_of_its_expansions_matches(
    grant: TopicPattern, name: str, of: frozenset[GroupName], topic: RoutingKey
) -> None:
    expected = any(one.matches(topic) for one in expanded(grant, name, of))

    assert matches(grant, topic, Subject.of(name, of)) is expected


@given(grants, names, groups, subscriptions)
def test_a_pattern_covers_what_one_of_its_expansions_covers(
    grant: TopicPattern, name: str, of: frozenset[GroupName], wanted: TopicPattern
) -> None:
    expected = any(covers_plainly(one, wanted) for one in expanded(grant, name, of))

    assert covers(grant, wanted, Subject.of(name, of)) is expected


@given(grants, grants, names, groups)
def test_patterns_that_match_a_topic_in_common_overlap(
    one: TopicPattern, other: TopicPattern, name: str, of: frozenset[GroupName]
) -> None:
    subject = Subject.of(name, of)
    common = [topic for topic in TOPICS if matches(one, topic, subject) and matches(other, topic, subject)]

    assert may_overlap(one, other) or not common


@given(subscriptions, subscriptions)
def test_patterns_without_placeholders_overlap_only_with_a_topic_in_common(
    one: TopicPattern, other: TopicPattern
) -> None:
    # An empty word, as in the prefix `a..b`, is in routing keys of SQS publishers only.
    words = ["", "a", "b", "ab"]
    topics = [".".join(chosen) for length in (1, 2, 3, 4) for chosen in product(words, repeat=length)]
    topics += [one.uri, other.uri]
    common = [topic for topic in topics if one.matches(RoutingKey(topic)) and other.matches(RoutingKey(topic))]

    assert may_overlap(one, other) is bool(common)


@pytest.mark.parametrize(
    ("pattern", "topic", "is_matched"),
    [
        ((MatchPolicy.PREFIX, "container.{group}."), "container.lab-a.c1.log.stdout", True),
        ((MatchPolicy.PREFIX, "container.{group}."), "container.lab-ab.c1.log.stdout", False),
        ((MatchPolicy.PREFIX, "container.{group}."), "container.lab-a", False),
        ((MatchPolicy.WILDCARD, "record..{user}.."), "record.collection.ann@x%2Eorg.u1.update", True),
        ((MatchPolicy.WILDCARD, "record..{user}.."), "record.collection.ann@x.org.u1.update", False),
        ((MatchPolicy.EXACT, "{group}.{group}"), "lab-a.g%2Eh", True),
        ((MatchPolicy.EXACT, "{group}"), "{group}", False),
        ((MatchPolicy.PREFIX, "{group}."), "", False),
    ],
)
def test_placeholders_are_whole_words(
    pattern: tuple[MatchPolicy, str],
    topic: str,
    is_matched: bool,  # noqa: FBT001
) -> None:
    subject = Subject.of("ann@x.org", [GroupName("lab-a"), GroupName("g.h")])

    assert matches(TopicPattern(*pattern), RoutingKey(topic), subject) is is_matched


def test_nobodys_name_is_no_empty_word() -> None:
    assert not matches(TopicPattern(MatchPolicy.EXACT, "a.{user}"), RoutingKey("a."), NOBODY)


@pytest.mark.parametrize(
    ("uri", "match", "reason"),
    [
        ("log-{user}.a", MatchPolicy.EXACT, "are whole words"),
        ("a.{group}", MatchPolicy.PREFIX, "end it with a dot"),
    ],
)
def test_a_placeholder_in_a_part_of_a_word_is_refused(uri: str, match: MatchPolicy, reason: str) -> None:
    with pytest.raises(InvalidUri, match=reason):
        check_placeholders(TopicPattern.parse(uri, match))


@pytest.mark.parametrize("uri", ["a.{x}.b", "a.{group}.", "{user}..{group}."])
def test_other_braces_are_text(uri: str) -> None:
    check_placeholders(TopicPattern.parse(uri, MatchPolicy.PREFIX))


@given(grants, names, groups, st.sampled_from(TOPICS))
def test_every_topic_that_a_grant_matches_has_its_beginning(
    grant: TopicPattern, name: str, of: frozenset[GroupName], topic: RoutingKey
) -> None:
    if matches(grant, topic, Subject.of(name, of)):
        assert topic.startswith(beginning(grant))


@pytest.mark.parametrize(
    ("uri", "match", "found"),
    [
        ("logs.{group}.a", MatchPolicy.EXACT, "logs."),
        ("logs.{user}.", MatchPolicy.PREFIX, "logs."),
        ("{user}.logs", MatchPolicy.EXACT, ""),
        ("logs.a", MatchPolicy.PREFIX, "logs.a"),
        ("a.b..{group}", MatchPolicy.WILDCARD, "a.b."),
    ],
)
def test_a_beginning_ends_before_the_first_open_word(uri: str, match: MatchPolicy, found: str) -> None:
    assert beginning(TopicPattern(match, uri)) == found
