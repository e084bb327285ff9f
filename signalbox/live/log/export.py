"""What of a topic's log can be exported: up to where it is complete."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.live.log.documents import audience_document
from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.audience import UNRESTRICTED
from signalbox.live.wamp.payloads import body_of

# A number that is not there by then will never be: its message became a dead letter, or its event was forgotten.
SETTLED_AFTER = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class ExportedEvent:
    """An event that is exported. `missing` is how many numbers before it will never be there."""

    event: LoggedEvent
    missing: int = 0


def settled_events(events: Iterable[LoggedEvent], *, after: int, now: datetime) -> Iterator[ExportedEvent]:
    """Yield events in their order, from the one behind the number `after` to where one may still come between them."""
    expected = after + 1
    for event in events:
        sequence = event.sequence or 0
        if sequence > expected and now - event.at < SETTLED_AFTER:
            return
        yield ExportedEvent(event, sequence - expected)
        expected = sequence + 1


def body_and_headers(event: LoggedEvent) -> tuple[str | None, dict[str, str]]:
    """Return the message by which an event can be published again; no body where it was too large for the log."""
    if event.omitted_bytes is not None:
        return None, dict(event.headers)
    if event.is_text:
        return str(event.payload.arguments[0]), dict(event.headers)
    body, own = body_of(event.payload)
    return body, {**event.headers, **own}


def audience_text(event: LoggedEvent) -> str | None:
    """Return for whom alone an event was, as JSON, or None when it was for everybody."""
    audience = replace(event.audience, excluded_publisher=None)
    return None if audience == UNRESTRICTED else json.dumps(audience_document(audience), sort_keys=True)
