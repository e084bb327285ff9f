"""The reads of topic logs for an export."""

from datetime import UTC, datetime

from signalbox.aws.live.log import DynamoTopicLog
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.messages import Payload, PublicationId
from signalbox.sarracenia.rights.names import ExchangeName

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
REALM, OTHER = ExchangeName("xlog.fifo"), ExchangeName("xother.fifo")


def event(topic: str, sequence: int) -> LoggedEvent:
    return LoggedEvent(
        PublicationId(sequence), RoutingKey(topic), NOON, Payload((f"line {sequence}",)), sequence=sequence
    )


def test_events_after_a_number_are_returned_in_order(live_table):
    log = DynamoTopicLog(live_table)
    events = [event("a", sequence) for sequence in (1, 2, 10, 11)]
    log.append(REALM, [*events, event("a.b", 1)], live=LiveSettings())

    assert list(log.events_after(REALM, RoutingKey("a"), 1)) == events[1:]
    assert list(log.events_after(REALM, RoutingKey("a"), 11)) == []


def test_every_topic_of_a_realm_is_listed_and_no_other(live_table):
    log = DynamoTopicLog(live_table)
    log.append(REALM, [event("b", 1), event("", 1), event("a", 1)], live=LiveSettings())
    log.append(OTHER, [event("c", 1)], live=LiveSettings())

    assert list(log.every_topic(REALM)) == ["", "a", "b"]
    assert list(log.every_topic(REALM, RoutingKey("a"))) == ["b", "", "a"]
