"""The result of the procedure `wamp.subscription.get_events`."""

from signalbox.live.log.events import LoggedEvent, event_for, rfc3339, size_limited
from signalbox.live.log.selection import HistoryPage
from signalbox.live.wamp.codec import MAXIMUM_ID, MAXIMUM_MESSAGE_BYTES, serialize, size_bytes
from signalbox.live.wamp.messages import Payload, RequestId, Result
from signalbox.live.wamp.patterns import TopicPattern

ROOM_BYTES = 512  # for what the RESULT contains in addition to its events


def get_events_result(
    page: HistoryPage, pattern: TopicPattern, *, maximum_bytes: int = MAXIMUM_MESSAGE_BYTES
) -> Payload:
    """Return the procedure's result: as many events as fit into one message, and whether there are more.

    The events are the result's positional arguments, as in the specification. The keywords `complete` and `more` are
    those of `HistoryPage`. They are always present, so that every client library returns the same shape.
    """
    objects = [_object(event, pattern) for event in page.events]
    fitting = _fitting(objects, maximum_bytes - ROOM_BYTES)
    has_more = page.has_more or fitting < len(objects)
    return Payload(tuple(objects[:fitting]), {"complete": page.is_complete, "more": has_more})


def _object(logged: LoggedEvent, pattern: TopicPattern) -> dict[str, object]:
    """Return an event in the form of the specification (advanced profile, «Event History»)."""
    event = size_limited(event_for(pattern, logged))
    document = {
        "timestamp": rfc3339(logged.at),
        "subscription": event.subscription,
        "publication": event.publication,
        "details": event.details,
        "args": list(event.payload.arguments),
        "kwargs": event.payload.keywords,
    }
    return {name: value for name, value in document.items() if value or name == "details"}


def _fitting(objects: list[dict[str, object]], maximum_bytes: int) -> int:
    """Return how many objects fit, at least one: otherwise a client could never page past a large event."""
    size = 0
    for number, one in enumerate(objects):
        size += size_bytes(serialize(Result(RequestId(MAXIMUM_ID), {}, Payload((one,)))))
        if number and size > maximum_bytes:
            return number
    return len(objects)
