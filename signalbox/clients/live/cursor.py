"""What a client has seen of a subscription, and so: what is new to it, and what it asks for when it comes back."""

from collections import deque
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

KEPT_PUBLICATIONS = 1_000  # of events without a number, such as those about sessions
# What SUBSCRIBE may say of topics: a client's message is one frame, and there are other things in it.
TOPICS_BYTES = MAXIMUM_FRAME_BYTES - 2_048
NUMBER_BYTES = 24  # what a topic takes beside its name
# Of topics for which there is no room, events of so long before the newest that was seen are asked for again.
GRACE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event as a client has it. `sequence` is its number in its topic, and `at` when it was published.

    A `is_retained` event is the topic's latest state, and not new. With `omitted_bytes`, its payload is that large and
    did not fit through the connection. `skipped` events came before it in its topic that this client did not get:
    they are kept no longer, or are not for its user. Who published it is only told if that one wanted it.
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
class Cursor:
    """Where a client is in what a pattern matches. `wish` is what it wants of the past at first.

    `is_caught_up` says that all of the past has come, and `since` when, by the router's clock, that was asked for.
    `is_over` says that the router refuses it, or has ended it.
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
    _others: deque[PublicationId] = field(default_factory=lambda: deque(maxlen=KEPT_PUBLICATIONS))

    @property
    def options(self) -> Dictionary:
        """Return the options of the SUBSCRIBE that goes on where this is."""
        history = self._history()
        told = {
            "match": self.pattern.match.value,
            "get_retained": self.get_retained or None,
            "_history": history and history_option(history),
        }
        return {name: value for name, value in told.items() if value is not None}

    def caught_up(self, joined_at: datetime | None) -> None:
        """Take note that the past has come that was asked for by a session which began at a time."""
        self.is_caught_up = True
        self.since = self.since or joined_at

    def received(self, event: Event) -> ReceivedEvent | None:
        """Return an event as it is to be given to the application, or None if that has it already.

        Raises `MalformedMessage` when the router tells what the specification has in another form.
        """
        received = _received(event, self.pattern)
        if received.sequence is None:
            return received if self._is_other(received.publication) else None
        if received.is_retained:
            return received if self._is_newly_retained(received, received.sequence) else None
        return self._next(received, received.sequence)

    def _next(self, received: ReceivedEvent, sequence: int) -> ReceivedEvent | None:
        topic, before = received.topic, self._numbers.get(received.topic)
        if before is not None and sequence <= before:
            return None
        # Moved to the end: where there is no room for all topics, the liveliest are named.
        self._numbers.pop(topic, None)
        self._numbers[topic] = sequence
        self._newest = max(filter(None, (self._newest, received.at)), default=None)
        if self._retained.get(topic) == received.publication:
            return None
        return received if before is None else replace(received, skipped=sequence - before - 1)

    def _is_newly_retained(self, received: ReceivedEvent, sequence: int) -> bool:
        """Say whether a topic's latest state is not known yet; the same event may come once more, in the past."""
        topic = received.topic
        if self._retained.get(topic) == received.publication or sequence <= self._numbers.get(topic, -1):
            return False
        self._retained[topic] = received.publication
        return True

    def _is_other(self, publication: PublicationId) -> bool:
        if publication in self._others:
            return False
        self._others.append(publication)
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
    """Return the numbers of the topics that were seen last, as many as fit."""
    named: dict[str, int] = {}
    room = TOPICS_BYTES
    for topic in reversed(numbers):
        room -= size_bytes(topic) + NUMBER_BYTES
        if room < 0:
            break
        named[topic] = numbers[topic]
    return named
