"""Export of a topic's log up to the last event before which no other can still arrive."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.live.log.documents import AUDIENCE
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.payloads import body_of
from signalbox.live.wamp.audience import UNRESTRICTED

# A sequence number still missing by then stays missing: its message was dead-lettered, or its event has expired.
SETTLED_AFTER = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class ExportedEvent:
    """An exported event. `missing` is the number of sequence numbers directly before it that have no event."""

    event: LoggedEvent
    missing: int = 0


def settled_events(events: Iterable[LoggedEvent], *, after: int, now: datetime) -> Iterator[ExportedEvent]:
    """Yield the events after the number `after`, and stop before a gap that a late event may still fill."""
    expected = after + 1
    for event in events:
        sequence = event.sequence or 0
        if sequence > expected and now - event.at < SETTLED_AFTER:
            return
        yield ExportedEvent(event, sequence - expected)
        expected = sequence + 1


def body_and_headers(event: LoggedEvent) -> tuple[str | None, dict[str, str]]:
    """Return the message body and headers that republish an event; the body is None if the log omitted it."""
    if event.omitted_bytes is not None:
        return None, dict(event.headers)
    if event.is_text:
        return str(event.payload.arguments[0]), dict(event.headers)
    body, own = body_of(event.payload)
    return body, {**event.headers, **own}


def audience_text(event: LoggedEvent) -> str | None:
    """Return an event's allow and deny lists as JSON, or None if it has none."""
    audience = replace(event.audience, excluded_publisher=None)
    return None if audience == UNRESTRICTED else json.dumps(AUDIENCE.write(audience), sort_keys=True)
