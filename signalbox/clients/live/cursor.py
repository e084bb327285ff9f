"""A client's position in a subscription: which events are new, and the backfill to request after a reconnect."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from signalbox.documents import Problems, Section
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.wamp.codec import MAXIMUM_FRAME_BYTES, MalformedMessage, size_bytes
from signalbox.live.wamp.messages import EMPTY, Dictionary, Event, Payload, PublicationId
from signalbox.live.wamp.options import (
    AfterSequence,
    AfterTopicSequences,
    BackfillStart,
    history_option,
    parse_timestamp,
)
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

# Meta events have no number, and a PUBLISH that is handled again after five minutes has another one.
KEPT_PUBLICATIONS = 1_000
# For the topics in a SUBSCRIBE: a client's message is one frame, which has other fields.
TOPICS_BYTES = MAXIMUM_FRAME_BYTES - 2_048
NUMBER_BYTES = 24  # for a topic's sequence number and punctuation
# For topics that do not fit, the backfill starts this long before the newest received event.
GRACE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """A received event. `sequence` is its number in its topic, and `at` the time of its publication.

    An `is_retained` event is the topic's retained event, not a new one. `omitted_bytes` is the size of a payload that
    exceeds the limit of a connection. `skipped` is the number of earlier events of the topic that this client did not
    receive, since they have expired or do not admit its user. The publisher is None unless it disclosed itself.
    """

    topic: RoutingKey
    publication: PublicationId
    payload: Payload = EMPTY
    sequence: int | None = None
    at: datetime | None = None
    is_retained: bool = False
    omitted_bytes: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    skipped: int = 0
    publisher: int | None = None
    publisher_authid: str | None = None
    publisher_authrole: str | None = None


@dataclass(slots=True)
class PatternCursor:
    """The position of a client in a pattern's events. `backfill_start` is that of the first backfill.

    `is_caught_up` is true when the backfill is complete; `since` is the router's time at which the session that
    requested it began. `is_over` is true when the router has refused or ended the subscription.
    """

    pattern: TopicPattern
    backfill_start: BackfillStart | None = None
    get_retained: bool = False
    is_caught_up: bool = False
    is_over: bool = False
    since: datetime | None = None
    _numbers: dict[RoutingKey, int] = field(default_factory=dict)
    _newest: datetime | None = None
    _retained: dict[RoutingKey, PublicationId] = field(default_factory=dict)
    _publications: dict[PublicationId, None] = field(default_factory=dict)

    @property
    def options(self) -> Dictionary:
        """Return the options of the SUBSCRIBE that continues from this position."""
        history = self._history()
        options = {
            "match": self.pattern.match.value,
            "get_retained": self.get_retained or None,
            "_history": history and history_option(history),
        }
        return {name: value for name, value in options.items() if value is not None}

    def caught_up(self, joined_at: datetime | None) -> None:
        """Mark the backfill as complete that was requested by a session which began at `joined_at`."""
        self.is_caught_up = True
        self.since = self.since or joined_at

    def omit_past(self, joined_at: datetime | None) -> None:
        """Leave out past events: continue after the next SUBSCRIBE, and later with the events since a session."""
        self.backfill_start, self.get_retained, self.since, self.is_caught_up = None, False, joined_at, False
        self._numbers.clear()

    def received(self, event: Event) -> ReceivedEvent | None:
        """Return the event for the application, or None if it is a duplicate.

        Raises `MalformedMessage` if the event's details have an unexpected form.
        """
        received = _received(event, self.pattern)
        if received.sequence is None:
            return received if self._is_new(received.publication) else None
        if received.is_retained:
            return received if self._is_newly_retained(received, received.sequence) else None
        return self._next(received, received.sequence)

    def _next(self, received: ReceivedEvent, sequence: int) -> ReceivedEvent | None:
        topic, before = received.topic, self._numbers.get(received.topic)
        if before is not None and sequence <= before:
            return None
        # Moved to the end: if not all topics fit into a SUBSCRIBE, the most recently active ones are listed.
        self._numbers.pop(topic, None)
        self._numbers[topic] = sequence
        self._newest = max(filter(None, (self._newest, received.at)), default=None)
        if not self._is_new(received.publication) or self._retained.get(topic) == received.publication:
            return None
        return received if before is None else replace(received, skipped=sequence - before - 1)

    def _is_newly_retained(self, received: ReceivedEvent, sequence: int) -> bool:
        """Return whether a topic's retained event is new; the backfill may contain the same event again."""
        topic = received.topic
        if self._retained.get(topic) == received.publication or sequence <= self._numbers.get(topic, -1):
            return False
        self._retained[topic] = received.publication
        return True

    def _is_new(self, publication: PublicationId) -> bool:
        if publication in self._publications:
            return False
        self._publications[publication] = None
        if len(self._publications) > KEPT_PUBLICATIONS:
            del self._publications[next(iter(self._publications))]
        return True

    def _history(self) -> BackfillStart | None:
        number = self._numbers.get(RoutingKey(self.pattern.uri))
        if self.pattern.match is MatchPolicy.EXACT and number is not None:
            return AfterSequence(number)
        if not self.is_caught_up or self.since is None:
            return self.backfill_start
        named = _fitting(self._numbers)
        if len(named) == len(self._numbers) or self._newest is None:
            return AfterTopicSequences(self.since, named)
        return AfterTopicSequences(max(self.since, self._newest - GRACE), named)


def _received(event: Event, pattern: TopicPattern) -> ReceivedEvent:
    problems = Problems()
    details = Section.of(event.details, "details", problems)
    at, headers = details.fields.get("_at"), details.fields.get("_headers")
    received = ReceivedEvent(
        topic=RoutingKey(details.text("topic") or pattern.uri),
        publication=event.publication,
        payload=event.payload,
        sequence=details.whole_number("_seq"),
        at=parse_timestamp(at) if isinstance(at, str) else None,
        is_retained=details.flag("retained"),
        omitted_bytes=details.whole_number("_omitted_bytes"),
        headers={name: str(text) for name, text in headers.items()} if isinstance(headers, Mapping) else {},
        publisher=details.whole_number("publisher"),
        publisher_authid=details.text("publisher_authid"),
        publisher_authrole=details.text("publisher_authrole"),
    )
    problems.refuse(MalformedMessage)
    return received


def _fitting(numbers: dict[RoutingKey, int]) -> dict[str, int]:
    """Return the sequence numbers of the most recently active topics, as many as fit."""
    named: dict[str, int] = {}
    room = TOPICS_BYTES
    for topic in reversed(numbers):
        room -= size_bytes(json.dumps(topic, ensure_ascii=False)) + NUMBER_BYTES
        if room < 0:
            break
        named[topic] = numbers[topic]
    return named
