"""A logged event, and the EVENT message that subscribers receive for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES, serialize, size_bytes
from signalbox.live.wamp.messages import EMPTY, Event, Payload, PublicationId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

ROOM_BYTES = 1_024  # for what a message contains in addition to the event
MAXIMUM_EVENT_BYTES = MAXIMUM_MESSAGE_BYTES - ROOM_BYTES
KEPT_TEXTS = 64  # at most 8 MB


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event in the log of its topic. `sequence` is its number in the topic, on an ordered exchange.

    `headers` are set by publishers over SQS, the command line and sr3. A payload larger than a connection's limit is
    omitted, and `omitted_bytes` is its size. With `is_text` the message body was the payload's string itself, not
    JSON. `sqs_sequence` is the SequenceNumber of its SQS message, if known, which orders all events of the exchange.
    `delay_ms` is the time from its publication to its log if that was long, such as in an outage; a redelivery may
    change it.
    """

    publication: PublicationId
    topic: RoutingKey
    at: datetime
    payload: Payload = EMPTY
    sequence: int | None = None
    audience: Audience = UNRESTRICTED
    disclosed: Listener | None = None
    is_retained: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    omitted_bytes: int | None = None
    is_text: bool = False
    sqs_sequence: int | None = None
    delay_ms: int | None = field(default=None, compare=False)

    @property
    def is_removal(self) -> bool:
        """Return whether it is a retained event without a payload, after which its topic has no retained event."""
        return self.is_retained and self.payload == EMPTY and self.omitted_bytes is None

    @property
    def logged_at(self) -> datetime:
        """Return the time from which the log may have had the event."""
        return self.at + timedelta(milliseconds=self.delay_ms or 0)


def event_for(pattern: TopicPattern, logged: LoggedEvent, *, is_retained: bool = False) -> Event:
    """Return the EVENT for a subscription. With `is_retained` it is the topic's retained event, not a new one."""
    details = dict(_details(pattern, logged))
    if is_retained:
        details["retained"] = True
    return Event(pattern.subscription_id, logged.publication, details, logged.payload)


def size_limited(event: Event) -> Event:
    """Return the event, without its payload if it exceeds the size limit of a connection.

    The detail `_omitted_bytes` is then its size. An SQS message may be eight times as large as a connection's limit.
    """
    return _size_limited(event)[0]


def _size_limited(event: Event) -> tuple[Event, str]:
    text = serialize(event)
    size = size_bytes(text)
    if size <= MAXIMUM_EVENT_BYTES:
        return event, text
    omitted = replace(event, details={**event.details, "_omitted_bytes": size}, payload=EMPTY)
    return omitted, serialize(omitted)


@dataclass(slots=True)
class EventTexts:
    """The serialized EVENT messages of the newest events: each is serialized once for all receivers of a subscription.

    An event is compared as a whole, since a publisher may choose the publication id of another one.
    """

    maximum: int = KEPT_TEXTS
    _texts: dict[tuple[PublicationId, TopicPattern, bool], tuple[LoggedEvent, str]] = field(default_factory=dict)

    def text(self, pattern: TopicPattern, logged: LoggedEvent, *, is_retained: bool = False) -> str:
        """Return the EVENT for a subscription within the size limit of a connection; see `event_for`."""
        key = logged.publication, pattern, is_retained
        known = self._texts.get(key)
        if known is not None and (known[0] is logged or known[0] == logged):
            return known[1]
        _, text = _size_limited(event_for(pattern, logged, is_retained=is_retained))
        if len(self._texts) >= self.maximum:
            self._texts = {}  # replaced and not changed: connections are written to in parallel
        self._texts[key] = logged, text
        return text


def rfc3339(at: datetime) -> str:
    """Format a time as in WAMP: RFC 3339 in UTC with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _details(pattern: TopicPattern, logged: LoggedEvent) -> Iterator[tuple[str, object]]:
    if pattern.match is not MatchPolicy.EXACT:
        yield "topic", logged.topic
    yield "_at", rfc3339(logged.at)
    if logged.sequence is not None:
        yield "_seq", logged.sequence
    if logged.disclosed is not None:
        yield "publisher", logged.disclosed.session
        yield "publisher_authid", logged.disclosed.authid
        yield "publisher_authrole", logged.disclosed.authrole
    if logged.headers:
        yield "_headers", dict(logged.headers)
    if logged.omitted_bytes is not None:
        yield "_omitted_bytes", logged.omitted_bytes
