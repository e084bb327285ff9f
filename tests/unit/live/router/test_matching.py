"""The subscription index."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.model.topics import RoutingKey, words_of
from signalbox.live.router.matching import SubscriptionIndex
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

words = st.sampled_from(["a", "b", "ab", "", "*", "#", "##", "#*", "é"])
uris = st.lists(words.filter(lambda word: "#" not in word), max_size=5).map(".".join)
keys = st.lists(words, max_size=5).map(".".join).map(RoutingKey)
patterns = st.builds(TopicPattern, st.sampled_from(MatchPolicy), uris)
subscriptions = st.tuples(patterns, st.sampled_from(["s1", "s2", "s3"]))


def is_match(pattern: TopicPattern, topic: str) -> bool:
    """The definition, character by character and component by component."""
    if pattern.match is MatchPolicy.EXACT:
        return list(pattern.uri) == list(topic)
    if pattern.match is MatchPolicy.PREFIX:
        return list(pattern.uri) == list(topic)[: len(pattern.uri)]
    wanted, components = pattern.uri.split("."), words_of(topic)
    if len(wanted) != len(components):
        return False
    return all(wanted[place] in ("", components[place]) for place in range(len(wanted)))


def index_of(*subscribed: tuple[TopicPattern, str]) -> SubscriptionIndex[str]:
    index: SubscriptionIndex[str] = SubscriptionIndex()
    for pattern, target in subscribed:
        index.add(pattern, target)
    return index


@given(st.lists(subscriptions, max_size=12), keys)
def test_the_index_agrees_with_the_definition_and_returns_each_target_once(
    subscribed: list[tuple[TopicPattern, str]], key: RoutingKey
) -> None:
    found = index_of(*subscribed).matching(key)

    assert sorted(found) == sorted({target for pattern, target in subscribed if is_match(pattern, key)})


@given(st.lists(st.tuples(st.booleans(), subscriptions), max_size=20), keys)
def test_the_index_agrees_with_the_definition_after_additions_and_removals(
    steps: list[tuple[bool, tuple[TopicPattern, str]]], key: RoutingKey
) -> None:
    index: SubscriptionIndex[str] = SubscriptionIndex()
    left: set[tuple[TopicPattern, str]] = set()
    for subscribe, (pattern, target) in steps:
        if subscribe:
            index.add(pattern, target)
            left.add((pattern, target))
        else:
            index.remove(pattern, target)
            left.discard((pattern, target))

    assert set(index.matching(key)) == {target for pattern, target in left if is_match(pattern, key)}


@given(st.lists(subscriptions, max_size=12), st.randoms())
def test_an_emptied_index_holds_nothing(subscribed: list[tuple[TopicPattern, str]], random: Random) -> None:
    index = index_of(*subscribed)
    random.shuffle(subscribed)

    for pattern, target in subscribed:
        index.remove(pattern, target)

    assert not index._exact
    assert not index._prefixes._targets
    assert not index._prefixes._lengths
    assert not index._wildcards._root.edges


@given(patterns, keys)
def test_a_pattern_matches_by_the_same_definition(pattern: TopicPattern, key: RoutingKey) -> None:
    assert pattern.matches(key) == is_match(pattern, key)


@pytest.mark.parametrize(
    ("match", "uri", "topic", "is_wanted"),
    [
        # Advanced profile, «Pattern-based Subscription»: its own examples.
        (MatchPolicy.PREFIX, "com.myapp.topic.emergency", "com.myapp.topic.emergency.11", True),
        (MatchPolicy.PREFIX, "com.myapp.topic.emergency", "com.myapp.topic.emergency-low", True),
        (MatchPolicy.PREFIX, "com.myapp.topic.emergency", "com.myapp.topic.emergency.category.severe", True),
        (MatchPolicy.PREFIX, "com.myapp.topic.emergency", "com.myapp.topic.emergency", True),
        (MatchPolicy.PREFIX, "com.myapp.topic.emergency", "com.myapp.topic.emerge", False),
        (MatchPolicy.WILDCARD, "com.myapp..userevent", "com.myapp.foo.userevent", True),
        (MatchPolicy.WILDCARD, "com.myapp..userevent", "com.myapp.bar.userevent", True),
        (MatchPolicy.WILDCARD, "com.myapp..userevent", "com.myapp.a12.userevent", True),
        (MatchPolicy.WILDCARD, "com.myapp..userevent", "com.myapp.foo.userevent.bar", False),
        (MatchPolicy.WILDCARD, "com.myapp..userevent", "com.myapp.foo.user", False),
        (MatchPolicy.WILDCARD, "com.myapp..userevent", "com.myapp2.foo.userevent", False),
        # Cases that the specification does not define.
        (MatchPolicy.PREFIX, "", "anything.at.all", True),
        (MatchPolicy.PREFIX, "", "", True),
        (MatchPolicy.WILDCARD, "a.*", "a.*", True),
        (MatchPolicy.WILDCARD, "a.*", "a.b", False),
        (MatchPolicy.WILDCARD, "", "a", True),
        (MatchPolicy.WILDCARD, "", "", False),
        (MatchPolicy.WILDCARD, ".", "a.b", True),
        (MatchPolicy.WILDCARD, "a.", "a.#", True),
        (MatchPolicy.WILDCARD, "a.*.", "a.#*.b", False),
        (MatchPolicy.EXACT, "a", "a.b", False),
    ],
)
def test_the_specifications_examples_match(match: MatchPolicy, uri: str, topic: str, is_wanted: bool) -> None:  # noqa: FBT001
    index = index_of((TopicPattern.parse(uri, match), "s"))

    assert index.matching(RoutingKey(topic)) == (["s"] if is_wanted else [])


def test_prefixes_of_one_length_are_independent() -> None:
    ab, cd = (TopicPattern.parse(uri, MatchPolicy.PREFIX) for uri in ("ab", "cd"))
    index = index_of((ab, "s"), (ab, "s"), (cd, "s"))

    index.remove(ab, "s")
    index.remove(ab, "s")
    index.remove(ab, "other")

    assert index.matching(RoutingKey("ab")) == []
    assert index.matching(RoutingKey("cde")) == ["s"]


def test_the_subscription_id_depends_only_on_the_pattern() -> None:
    exact, prefix = TopicPattern.parse("a.b"), TopicPattern.parse("a.b", MatchPolicy.PREFIX)

    assert exact.subscription_id == TopicPattern.parse("a.b").subscription_id
    assert exact.subscription_id != prefix.subscription_id


@given(patterns)
def test_subscription_ids_are_valid_wamp_ids(pattern: TopicPattern) -> None:
    assert 1 <= pattern.subscription_id <= 2**53
