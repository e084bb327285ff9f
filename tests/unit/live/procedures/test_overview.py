"""What our own procedures answer, and to whom."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.errors import UnavailableError
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.grants import Grant, Rights
from signalbox.live.log.history_request import InvalidArgument
from signalbox.live.procedures import names as procedures
from signalbox.live.procedures.overview import (
    MAXIMUM_PICTURES,
    MAXIMUM_TOPICS,
    OVERVIEW,
    PROCEDURES,
    REPORT,
    TOPICS,
    Asking,
    Glances,
    Picture,
    PictureName,
    Topic,
)
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName
from signalbox.sarracenia.rights.permissions import Right

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
REALM = ExchangeName("trial.fifo")
ALL = Rights(frozenset({Right.READ}), ())


@dataclass
class MemoryTopics:
    names: Sequence[str] = ()

    def beginning_with(self, realm: ExchangeName, prefix: str) -> Sequence[Topic]:
        assert realm == REALM
        return [Topic(RoutingKey(name)) for name in self.names if name.startswith(prefix)]


@dataclass
class MemoryPictures:
    pictures: dict[str, str] = field(default_factory=dict)

    def every(self) -> Sequence[Picture]:
        return [
            Picture(PictureName(name), NOON + timedelta(minutes=minute)) for minute, name in enumerate(self.pictures)
        ]

    def find(self, name: PictureName) -> str | None:
        return self.pictures.get(name)


def asked(
    procedure: str, *arguments: object, rights: Rights = ALL, keywords=None, topics=(), pictures=None, parts=None
):
    glances = Glances(MemoryTopics(topics), parts or {}, MemoryPictures(pictures or {}))
    asking = Asking(REALM, rights, NOON)
    return glances.answer(procedure, Payload(tuple(arguments), keywords or {}), asking)


def test_every_procedure_that_is_answered_here_can_be_called():
    assert PROCEDURES.keys() <= procedures.PROCEDURES.keys()


def test_topics_are_told_by_their_prefix_and_only_those_that_may_be_seen():
    rights = Rights(frozenset(), (Grant(Right.READ, TopicPattern(MatchPolicy.PREFIX, "logs.a")),))

    told = asked(TOPICS, rights=rights, keywords={"prefix": "logs."}, topics=("logs.a1", "logs.b", "other", "logs.a2"))

    names = ("logs.a1", "logs.a2")
    assert told == Payload(([{"topic": name, "retained_at": None} for name in names],), {"more": False})


def test_a_topic_with_a_retained_event_says_since_when():
    glances = Glances(MemoryTopics(), {}, MemoryPictures())
    glances.topics.beginning_with = lambda *_: [Topic(RoutingKey("a"), NOON)]  # type: ignore[method-assign]

    told = glances.answer(TOPICS, Payload(), Asking(REALM, ALL, NOON))

    assert told.arguments == ([{"topic": "a", "retained_at": "2026-11-21T12:00:00.000Z"}],)


def test_more_topics_than_an_answer_holds_are_said_to_be_there():
    names = [f"t{number:04}" for number in range(MAXIMUM_TOPICS + 1)]

    told = asked(TOPICS, topics=names)

    assert [one["topic"] for one in told.arguments[0]] == names[:-1]
    assert told.keywords == {"more": True}


def test_a_prefix_must_be_a_text():
    with pytest.raises(InvalidArgument, match="prefix: expected a text, not 7"):
        asked(TOPICS, keywords={"prefix": 7})


def test_the_overview_tells_every_part_and_names_those_that_are_not_to_be_had():
    def broken(_now: datetime) -> object:
        raise UnavailableError("AWS answered Throttling")

    told = asked(OVERVIEW, parts={"splits": lambda now: [now.hour], "rendezvous": broken})

    assert told == Payload(
        ({"at": "2026-11-21T12:00:00.000Z", "splits": [12]},),
        {"unavailable": {"rendezvous": "AWS answered Throttling"}},
    )


def test_pictures_are_listed_the_newest_first_and_not_without_end():
    names = [f"p{number:03}.svg" for number in range(MAXIMUM_PICTURES + 1)]

    told = asked(REPORT, pictures=dict.fromkeys(names, "<svg/>"))

    assert [one["name"] for one in told.arguments[0]] == names[:0:-1]
    assert told.arguments[0][-1] == {"name": "p001.svg", "made_at": "2026-11-21T12:01:00.000Z"}


def test_a_picture_is_told_by_its_name():
    assert asked(REPORT, "a.svg", pictures={"a.svg": "<svg/>"}) == Payload(("<svg/>",))


@pytest.mark.parametrize("name", ["b.svg", 7, None])
def test_a_picture_that_is_not_there_is_refused_with_the_way_to_those_that_are(name):
    with pytest.raises(InvalidArgument, match=r"there is no picture .*; a call without arguments lists them"):
        asked(REPORT, name, pictures={"a.svg": "<svg/>"})


def test_a_picture_that_no_message_holds_is_refused_with_its_size():
    with pytest.raises(InvalidArgument, match=rf"takes 13....? bytes; at most {MAXIMUM_MESSAGE_BYTES} fit"):
        asked(REPORT, "a.svg", pictures={"a.svg": "x" * MAXIMUM_MESSAGE_BYTES})
