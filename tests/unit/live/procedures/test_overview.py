"""The `signalbox.*` procedures over given topics, parts and pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.activity.measures import CAPABILITIES, Sources
from signalbox.activity.recent import RecentActivity
from signalbox.activity.summary import activities
from signalbox.errors import UnavailableError
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.history_request import InvalidArgument
from signalbox.live.log.read_limits import SMALL
from signalbox.live.procedures.overview import (
    MAXIMUM_PICTURES,
    MAXIMUM_RANGES,
    MAXIMUM_TOPICS,
    OverviewContext,
    OverviewPart,
    Picture,
    PictureName,
    StageOverview,
    Topic,
    find_reports,
    list_topics,
    summarize_activity,
    summarize_stage,
)
from signalbox.live.rights.grants import Grant, Rights
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
REALM, USER = ExchangeName("trial.fifo"), UserName("joe")
ALL = Rights(frozenset({Right.READ}), ())


@dataclass
class MemoryTopics:
    """The topics of a realm; `read` has the requested prefixes and the topics that were taken."""

    names: Sequence[str] = ()
    cost: int = 1
    read: list[str] = field(default_factory=list)

    def behind(self, realm: ExchangeName, prefix: str, after: str) -> Iterator[tuple[Topic, int]]:
        assert realm == REALM
        self.read.append(f"{prefix}*")
        for name in sorted(self.names):
            if name.startswith(prefix) and (not after or name > after):
                self.read.append(name)
                yield Topic(RoutingKey(name), NOON), self.cost


IDLE = RecentActivity(lambda now: activities(Sources(dict.fromkeys(CAPABILITIES, ())), {}, now), timedelta(0))


@dataclass
class MemoryPictures:
    pictures: dict[str, str] = field(default_factory=dict)

    def every(self) -> Sequence[Picture]:
        return [
            Picture(PictureName(name), NOON + timedelta(minutes=minute)) for minute, name in enumerate(self.pictures)
        ]

    def find(self, name: PictureName) -> str | None:
        return self.pictures.get(name)


def call(procedure, *arguments: object, rights: Rights = ALL, keywords=None, topics=(), pictures=None, parts=None):
    read = topics if isinstance(topics, MemoryTopics) else MemoryTopics(topics)
    stage = StageOverview(read, parts or {}, MemoryPictures(pictures or {}), IDLE)
    context = OverviewContext(stage, REALM, rights, NOON, REALM.__eq__, lambda _: None)
    return procedure(context, Payload(tuple(arguments), keywords or {}))


def reading(*patterns: TopicPattern) -> Rights:
    return Rights(frozenset(), tuple(Grant(Right.READ, one) for one in patterns))


def names_of(result: Payload) -> list[str]:
    return [one["topic"] for one in result.arguments[0]]


def test_topics_are_listed_by_prefix_and_only_those_that_the_caller_may_receive_are_read():
    topics = MemoryTopics(("logs.a1", "logs.b", "other", "logs.a2"))

    result = call(
        list_topics,
        rights=reading(TopicPattern(MatchPolicy.PREFIX, "logs.a")),
        keywords={"prefix": "logs."},
        topics=topics,
    )

    listed = [{"topic": name, "retained_at": "2026-11-21T12:00:00.000Z"} for name in ("logs.a1", "logs.a2")]
    assert result == Payload((listed,), {"more": False})
    assert topics.read == ["logs.a*", "logs.a1", "logs.a2"]


def test_a_caller_without_rights_below_the_prefix_has_nothing_read():
    topics = MemoryTopics(("logs.a", "other"))

    result = call(
        list_topics, rights=reading(TopicPattern(MatchPolicy.EXACT, "other")), keywords={"prefix": "l"}, topics=topics
    )

    assert (result, topics.read) == (Payload(([],), {"more": False}), [])


def test_many_grants_are_read_as_one_range():
    grants = [TopicPattern(MatchPolicy.EXACT, f"a.{number:02}") for number in range(MAXIMUM_RANGES + 1)]
    topics = MemoryTopics(("a.00", "a.10", "a.99"))

    result = call(list_topics, rights=reading(*grants), topics=topics)

    assert (names_of(result), topics.read) == (["a.00", "a.10"], ["a.*", "a.00", "a.10", "a.99"])


def test_the_pages_of_a_list_have_every_topic_once():
    names = [f"t{number:04}" for number in range(2 * MAXIMUM_TOPICS + 1)]
    pages = [call(list_topics, topics=names)]

    while pages[-1].keywords["more"]:
        pages.append(call(list_topics, topics=names, keywords={"after": names_of(pages[-1])[-1]}))

    assert [len(names_of(page)) for page in pages] == [MAXIMUM_TOPICS, MAXIMUM_TOPICS, 1]
    assert [name for page in pages for name in names_of(page)] == names


def test_a_page_ends_after_a_small_part_of_what_an_instance_may_read():
    topics = MemoryTopics([f"t{number}" for number in range(9)], cost=SMALL // 2)

    result = call(list_topics, topics=topics)

    assert (names_of(result), result.keywords) == (["t0", "t1", "t2"], {"more": True})
    assert len(topics.read) == 1 + 3 + 1


def test_topics_that_the_caller_may_not_receive_are_read_up_to_the_same_limit():
    topics = MemoryTopics([f"t{number}." for number in range(9)], cost=SMALL // 2)

    with pytest.raises(InvalidArgument, match="prefix: too many topics that begin with it are denied"):
        call(list_topics, rights=reading(TopicPattern(MatchPolicy.WILDCARD, ".x")), topics=topics)
    assert len(topics.read) == 1 + 3 + 1


def test_a_prefix_must_be_the_beginning_of_a_topic():
    with pytest.raises(InvalidArgument, match="prefix: expected a text, not 7"):
        call(list_topics, keywords={"prefix": 7})
    with pytest.raises(InvalidArgument, match="after: expected a text, not 7"):
        call(list_topics, keywords={"after": 7})
    with pytest.raises(InvalidArgument, match="prefix: has 256 bytes of UTF-8; at most 255 are allowed"):
        call(list_topics, keywords={"prefix": "a" * 256})


def test_the_overview_has_every_part_and_the_reasons_of_unavailable_parts():
    def broken(_now: datetime, _may_read: object) -> object:
        raise UnavailableError("AWS answered Throttling")

    parts = {
        "exchanges": OverviewPart(lambda now, may_read: [now.hour, may_read(REALM)]),
        "rendezvous": OverviewPart(broken),
    }
    result = call(summarize_stage, parts=parts)

    assert result == Payload(
        ({"at": "2026-11-21T12:00:00.000Z", "exchanges": [12, True]},),
        {"parts": ["exchanges", "rendezvous"], "unavailable": {"rendezvous": "AWS answered Throttling"}},
    )


@pytest.mark.parametrize(("is_admin", "shown"), [(True, {"at", "splits"}), (False, {"at"})])
def test_only_administrators_get_the_parts_for_administrators(is_admin, shown):
    parts = {"splits": OverviewPart(lambda *_: [], for_administrators=True)}

    result = call(summarize_stage, rights=replace(ALL, is_admin=is_admin), parts=parts)

    assert result.arguments[0].keys() == shown
    assert result.keywords == {"parts": ["splits"], "unavailable": {}}


def test_the_newest_pictures_are_listed_newest_first():
    names = [f"p{number:03}.svg" for number in range(MAXIMUM_PICTURES + 1)]

    result = call(find_reports, pictures=dict.fromkeys(names, "<svg/>"))

    assert [one["name"] for one in result.arguments[0]] == names[:0:-1]
    assert result.arguments[0][-1] == {"name": "p001.svg", "made_at": "2026-11-21T12:01:00.000Z"}


def test_a_picture_is_returned_by_its_name():
    assert call(find_reports, "a.svg", pictures={"a.svg": "<svg/>"}) == Payload(("<svg/>",))


@pytest.mark.parametrize("name", ["b.svg", 7, None])
def test_an_unknown_picture_is_refused_with_a_hint_at_the_list(name):
    with pytest.raises(InvalidArgument, match=r"there is no picture .*; a call without arguments lists them"):
        call(find_reports, name, pictures={"a.svg": "<svg/>"})


def test_a_picture_that_is_too_large_for_a_message_is_refused_with_its_size():
    reason = rf"takes 13....? bytes; a message may have at most {MAXIMUM_MESSAGE_BYTES}: read its file"
    with pytest.raises(InvalidArgument, match=reason):
        call(find_reports, "a.svg", pictures={"a.svg": "x" * MAXIMUM_MESSAGE_BYTES})


def test_the_activity_of_every_capability_has_the_time_of_its_read():
    (found,) = call(summarize_activity).arguments

    assert found["at"] == "2026-11-21T12:00:00.000Z"
    assert [one["capability"] for one in found["capabilities"]] == [
        "rendezvous",
        "splitting",
        "exchange",
        "live",
        "history",
    ]
    assert {one["rate"] for one in found["capabilities"]} == {0}
