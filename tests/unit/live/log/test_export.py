"""The export of a log: up to the first gap, with each event's original message."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from signalbox.exchange.matching.graph import Routes
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.documents import event_document, event_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.export import SETTLED_AFTER, audience_text, body_and_headers, settled_events
from signalbox.live.router.decoding import logged_event, publication_metadata
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.messages import Payload, PublicationId

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def event(sequence: int, *, ago: timedelta = timedelta(), **more) -> LoggedEvent:
    return LoggedEvent(PublicationId(sequence + 100), RoutingKey("a"), NOW - ago, sequence=sequence, **more)


def numbers(*events: LoggedEvent, after: int = 0) -> list[tuple[int | None, int]]:
    return [(one.event.sequence, one.missing) for one in settled_events(events, after=after, now=NOW)]


def test_an_export_continues_while_no_sequence_number_is_missing():
    assert numbers(event(3), event(4), after=2) == [(3, 0), (4, 0)]


def test_an_export_stops_before_a_gap_that_may_still_be_filled():
    assert numbers(event(1), event(3)) == [(1, 0)]


def test_permanently_missing_sequence_numbers_are_counted():
    assert numbers(event(3, ago=SETTLED_AFTER), event(4), event(9)) == [(3, 2), (4, 0)]


def test_an_event_is_exported_as_its_original_message():
    assert body_and_headers(event(1, payload=Payload(("line",)), headers={"color": "red"})) == (
        '"line"',
        {"color": "red"},
    )
    assert body_and_headers(event(1, payload=Payload((), {"a": 1})))[1] == {"payload": "wamp"}


def test_a_text_body_is_exported_unchanged_and_a_json_string_as_json():
    for body in ("line 1", '"line 1"', "17", '{"a":1}'):
        message = MessageProperties.of_publication("a", body).published()
        message = replace(message, system_attributes={"SentTimestamp": "1000"})
        publication = Publication(
            message, MessageProperties.from_published(message), Routes((), by_alternate=False), "alice"
        )
        event = event_of(event_document(logged_event(publication, publication_metadata(publication), sequence=1)))

        assert body_and_headers(event) == (body, {})


def test_an_event_with_an_omitted_payload_is_exported_without_a_body():
    assert body_and_headers(event(1, omitted_bytes=500_000)) == (None, {})


def test_the_audience_is_exported_unless_only_the_publisher_is_excluded():
    some = Audience(eligible_authid=frozenset({"bob", "alice"}))

    assert audience_text(event(1, audience=some)) == '{"eligible_authid": ["alice", "bob"]}'
    assert audience_text(event(1, audience=Audience(excluded_publisher=7))) is None
