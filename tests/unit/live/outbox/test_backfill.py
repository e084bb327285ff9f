"""Which logs of topics a backfill reads."""

from datetime import timedelta

import pytest

from signalbox.exchange.model.records import LiveSettings, Retention
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.outbox import backfill
from signalbox.live.outbox.backfill import BackfillReader
from signalbox.live.outbox.items import BackfillRequest, ItemId
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import PublicationId, SessionId
from signalbox.live.wamp.options import AfterTime, AfterTopicSequences, LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.fakes.live import REALM, START, MemoryTopicLog

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
EVERY = TopicPattern.parse("trial.", MatchPolicy.PREFIX)
JOE = Listener(SessionId(7), "joe", "subscriber")


@pytest.mark.parametrize(
    ("history", "deferred", "found"),
    [
        (LastEvents(2), {}, [6, 7]),
        (LastEvents(2), {RoutingKey("trial.1"): 1}, [1, 6, 7]),
        (AfterTime(START + 6 * HOUR + SECOND), {}, [7]),
        (AfterTopicSequences(START + 6 * HOUR, {}), {}, [6, 7]),
        (AfterTopicSequences(START + 7 * HOUR, {"trial.4": 0, "trial.1": 0}), {}, [4, 7]),
        (AfterTopicSequences(START, {}), {}, [3, 4, 5, 6, 7]),
        (None, {RoutingKey("trial.2"): 1}, [2]),
    ],
)
def test_only_topics_that_may_have_requested_events_are_read(history, deferred, found, monkeypatch) -> None:
    """Each of seven topics has an event, one an hour, and those of the first two hours have expired."""
    monkeypatch.setattr(backfill, "LOGS_AT_ONCE", 1)
    log, live = MemoryTopicLog(), LiveSettings(retention=Retention(age=5 * HOUR))
    for number in range(1, 8):
        at, topic = START + number * HOUR, RoutingKey(f"trial.{number}")
        log.append(REALM, LoggedEvent(PublicationId(number), topic, at, sequence=1))
    request = BackfillRequest(ItemId("i"), EVERY, get_retained=False, history=history)

    read = BackfillReader(log, REALM, live, START + 8 * HOUR).read(request, JOE, deferred=deferred, posted={})

    assert [one.event.publication for one in read.events] == found
    assert log.taken == len(found)


@pytest.mark.parametrize(
    ("count", "starts"),
    [(1, [19 * HOUR]), (6, [19 * HOUR, 14 * HOUR]), (7, [19 * HOUR, 14 * HOUR, -4 * HOUR]), (99, [])],
)
def test_the_last_events_list_topics_of_earlier_hours_only_if_later_ones_have_too_few(count, starts) -> None:
    log = MemoryTopicLog()
    for number in range(20):
        at, topic = START + number * HOUR, RoutingKey(f"trial.{number}")
        log.append(REALM, LoggedEvent(PublicationId(number + 1), topic, at, sequence=1))
    request = BackfillRequest(ItemId("i"), EVERY, get_retained=False, history=LastEvents(count))

    read = BackfillReader(log, REALM, LiveSettings(), START + 20 * HOUR).read(request, JOE, deferred={}, posted={})

    assert len(read.events) == min(count, 20)
    assert log.listed[: len(starts)] == [START + one for one in starts]
    assert len(log.listed) == (len(starts) or 3)
