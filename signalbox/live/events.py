"""An event as the log of its topic has it, and as subscribers get it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from signalbox.exchange.topics import RoutingKey
from signalbox.live.audience import EVERYBODY, Audience, Listener
from signalbox.live.messages import EMPTY, Event, Payload, PublicationId
from signalbox.live.patterns import Match, TopicPattern


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """A publication that stands. `sequence` is its number in its topic, on an ordered exchange."""

    publication: PublicationId
    topic: RoutingKey
    at: datetime
    payload: Payload = EMPTY
    sequence: int | None = None
    audience: Audience = EVERYBODY
    disclosed: Listener | None = None
    is_retained: bool = False


def event_for(pattern: TopicPattern, logged: LoggedEvent, *, is_retained: bool = False) -> Event:
    """Return the EVENT for a subscription; with `is_retained` it is a topic's latest, and not a new one."""
    details = dict(_details(pattern, logged))
    if is_retained:
        details["retained"] = True
    return Event(pattern.subscription_id, logged.publication, details, logged.payload)


def rfc3339(at: datetime) -> str:
    """Return a time as the specification has it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _details(pattern: TopicPattern, logged: LoggedEvent) -> Iterator[tuple[str, object]]:
    if pattern.match is not Match.EXACT:
        yield "topic", logged.topic
    yield "_at", rfc3339(logged.at)
    if logged.sequence is not None:
        yield "_seq", logged.sequence
    if logged.disclosed is not None:
        yield "publisher", logged.disclosed.session
        yield "publisher_authid", logged.disclosed.authid
        yield "publisher_authrole", logged.disclosed.authrole
