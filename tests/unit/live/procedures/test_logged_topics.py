"""The topics of a realm, as the log has them."""

from datetime import timedelta

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.procedures.overview import LoggedTopics, Topic
from signalbox.live.wamp.messages import PublicationId
from signalbox.sarracenia.rights.names import UserName
from tests.fakes.live import REALM, START, MemoryTopicLog


def test_topics_are_listed_with_the_time_of_their_latest_retained_event() -> None:
    log = MemoryTopicLog()
    for number, topic, is_retained in (
        (1, "trial.b", True),
        (2, "trial.a", False),
        (3, "trial.b", True),
        (4, "x", True),
    ):
        at = START + timedelta(seconds=number)
        log.append(REALM, LoggedEvent(PublicationId(number), RoutingKey(topic), at, is_retained=is_retained))

    assert LoggedTopics(log).beginning_with(REALM, "trial", reader=UserName("root")) == [
        Topic(RoutingKey("trial.a")),
        Topic(RoutingKey("trial.b"), START + timedelta(seconds=3)),
    ]
