"""An event as the log of its topic has it, and as subscribers get it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES, serialize, size_bytes
from signalbox.live.wamp.messages import EMPTY, Event, Payload, PublicationId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

ROOM_BYTES = 1_024  # what an answer with a past event says beside it
MAXIMUM_EVENT_BYTES = MAXIMUM_MESSAGE_BYTES - ROOM_BYTES


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """A publication that stands. `sequence` is its number in its topic, on an ordered exchange.

    `headers` are those of a publisher that has them: SQS's, the command's, sr3's. The payload of one that no connection
    could take is left out, and `omitted_bytes` tells how large it was. With `is_text` its message was that text itself,
    and no JSON. `place` is where SQS had it among all that was published to the exchange, if it said so.
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


def event_for(pattern: TopicPattern, logged: LoggedEvent, *, is_retained: bool = False) -> Event:
    """Return the EVENT for a subscription; with `is_retained` it is a topic's latest, and not a new one."""
    details = dict(_details(pattern, logged))
    if is_retained:
        details["retained"] = True
    return Event(pattern.subscription_id, logged.publication, details, logged.payload)


def size_limited(event: Event) -> Event:
    """Return an event as it can be posted: one that is too large for a connection without its payload.

    Its details say how large it was. What is published by SQS may be eight times as large as a connection takes.
    """
    size = size_bytes(serialize(event))
    if size <= MAXIMUM_EVENT_BYTES:
        return event
    return replace(event, details={**event.details, "_omitted_bytes": size}, payload=EMPTY)


def rfc3339(at: datetime) -> str:
    """Return a time as the specification has it."""
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
