"""What of a log is exported: everything up to where it is whole, and the message that each event was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from signalbox.exchange.matching.graph import Routes
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.event_documents import event_document, event_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.export import SETTLED, audience_text, body_and_headers, complete
from signalbox.live.router.decoding import arrived, noted
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.messages import Payload, PublicationId

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def event(sequence: int, *, ago: timedelta = timedelta(), **more) -> LoggedEvent:
    return LoggedEvent(PublicationId(sequence + 100), RoutingKey("a"), NOW - ago, sequence=sequence, **more)


def numbers(*events: LoggedEvent, after: int = 0) -> list[tuple[int | None, int]]:
    return [(one.event.sequence, one.missing) for one in complete(events, after=after, now=NOW)]


def test_all_events_behind_those_that_were_exported_are_whole_while_no_number_is_missing():
    assert numbers(event(3), event(4), after=2) == [(3, 0), (4, 0)]


def test_an_event_that_may_still_come_between_ends_the_export():
    assert numbers(event(1), event(3)) == [(1, 0)]


def test_numbers_that_will_never_be_there_are_counted():
    assert numbers(event(3, ago=SETTLED), event(4), event(9)) == [(3, 2), (4, 0)]


def test_an_event_is_exported_as_the_message_that_it_was():
    assert body_and_headers(event(1, payload=Payload(("line",)), headers={"color": "red"})) == (
        '"line"',
        {"color": "red"},
    )
    assert body_and_headers(event(1, payload=Payload((), {"a": 1})))[1] == {"payload": "wamp"}


def test_a_text_that_was_no_json_is_exported_as_it_was_and_one_that_was_json_as_json():
    for body in ("line 1", '"line 1"', "17", '{"a":1}'):
        message = MessageProperties.of_publication("a", body).published()
        message = replace(message, system_attributes={"SentTimestamp": "1000"})
        publication = Publication(
            message, MessageProperties.from_published(message), Routes((), by_alternate=False), "alice"
        )
        event = event_of(event_document(arrived(publication, noted(publication), sequence=1)))

        assert body_and_headers(event) == (body, {})


def test_an_event_that_was_too_large_for_the_log_has_no_message():
    assert body_and_headers(event(1, omitted_bytes=500_000)) == (None, {})


def test_an_event_for_some_says_for_whom_and_one_without_its_publisher_is_for_everybody():
    some = Audience(eligible_authid=frozenset({"bob", "alice"}))

    assert audience_text(event(1, audience=some)) == '{"eligible_authid": ["alice", "bob"]}'
    assert audience_text(event(1, audience=Audience(excluded_publisher=7))) is None
