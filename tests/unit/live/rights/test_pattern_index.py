"""The index of the patterns of grants answers as `coverage` does for each pattern."""

from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.rights.coverage import covers, matches
from signalbox.live.rights.grants import Grant, GrantSet, GroupGrants, Rights
from signalbox.live.rights.pattern_index import PatternIndex
from signalbox.live.rights.principals import EVERYONE, NOBODY, GroupName, Subject
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role

SUBJECTS = [NOBODY, Subject.of("a", [GroupName("b"), GroupName("ab")])]
WORDS = ["a", "b", "ab", "{user}", "{group}", ""]
uris = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(".".join)
patterns = st.builds(TopicPattern, st.sampled_from(MatchPolicy), uris)


def index_of(given_patterns: list[TopicPattern]) -> PatternIndex[int]:
    index: PatternIndex[int] = PatternIndex()
    for number, pattern in enumerate(given_patterns):
        index.add(pattern, number)
    return index


@given(st.lists(patterns, max_size=8), uris, st.sampled_from(SUBJECTS))
def test_the_index_finds_the_patterns_that_match_a_topic(
    granted: list[TopicPattern], topic: str, subject: Subject
) -> None:
    key = RoutingKey(topic)
    # A pattern without components is no wildcard, and a prefix does not end with a placeholder (`check_placeholders`).
    granted = [one for one in granted if (one.uri or one.match is MatchPolicy.PREFIX) and one.uri[-1:] != "}"]

    found = {number for entry in index_of(granted).matching(key, subject) for number in entry.values}

    assert found == {number for number, one in enumerate(granted) if matches(one, key, subject)}


@given(st.lists(patterns, max_size=8), patterns, st.sampled_from(SUBJECTS))
def test_the_index_finds_the_patterns_that_cover_a_subscription(
    granted: list[TopicPattern], requested: TopicPattern, subject: Subject
) -> None:
    granted = [one for one in granted if (one.uri or one.match is MatchPolicy.PREFIX) and one.uri[-1:] != "}"]

    found = {number for entry in index_of(granted).covering(requested, subject) for number in entry.values}

    assert found == {number for number, one in enumerate(granted) if covers(one, requested, subject)}


class CountedIndex(dict):  # type: ignore[type-arg]
    """Children of a node, with the number of look-ups."""

    looked_up = 0

    def __contains__(self, key: object) -> bool:
        CountedIndex.looked_up += 1
        return super().__contains__(key)


def test_a_check_costs_the_words_of_a_topic_and_not_the_denies_of_its_realm() -> None:
    many = tuple(Grant(Right.READ, TopicPattern(MatchPolicy.WILDCARD, f"a.{{user}}.{n}..")) for n in range(20_000))
    grants = GroupGrants(1, {EVERYONE: GrantSet((), many)})
    rights = Rights.in_realm(
        ExchangeName("xs_eve"),
        user=UserName("eve"),
        role=Role.SOURCE,
        ownership=Ownership.STRICT,
        group_grants=grants,
    )
    root = grants.index((Right.READ, True))._roots[MatchPolicy.WILDCARD]
    root.children = CountedIndex(root.children)
    below = root.children["a"]
    below.children["{user}"].children = CountedIndex(below.children["{user}"].children)

    assert not rights.is_denied(Right.READ, RoutingKey("a.eve.other.x.y"))
    assert rights.is_denied(Right.READ, RoutingKey("a.eve.19999.x.y"))
    assert not rights.is_denied(Right.WRITE, RoutingKey("a.eve.19999.x.y"))

    assert CountedIndex.looked_up < 20
