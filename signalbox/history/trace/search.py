"""The search for all events of a message: it follows the ids that link one event to the next."""

from collections.abc import Collection
from dataclasses import dataclass

from signalbox.errors import UnavailableError
from signalbox.history.event import HistoryEvent
from signalbox.history.ids import SEPARATOR
from signalbox.history.lookup import EventLookup, EventWindow, unique_events

MAXIMUM_ROUNDS = 12  # a message that was split, returned and split again takes about six
MAXIMUM_IDS = 500
# The labels whose ids are other names of the event's message. Not `publications`, since the other events of a
# connection's batch are other messages, and not `file`, which other messages announce as well.
SAME_MESSAGE = ("client", "copy", "publication")
PROXY_POLL = "proxy_poll"


class NotTraced(UnavailableError):
    """Raised when no event of the window names an id."""


@dataclass(frozen=True, slots=True)
class LinkedEvents:
    """The events found, in order of time. They are not complete if the search has reached its limits."""

    events: tuple[HistoryEvent, ...]
    is_complete: bool


def linked_events(lookup: EventLookup, asked: Collection[str], window: EventWindow) -> LinkedEvents:
    """Return the events that name one of the ids, and those that their ids lead to."""
    found: dict[str, HistoryEvent] = {}
    seen: set[str] = set()
    wanted = set(asked)
    for _ in range(MAXIMUM_ROUNDS):
        left = MAXIMUM_IDS - len(seen)
        if not wanted or not left:
            break
        chosen = set(sorted(wanted)[:left])
        found |= {one.event_id: one for one in lookup.events(chosen, window)}
        seen |= chosen
        wanted = {id_ for event in found.values() for id_ in _next_ids(event, asked)} - seen
    return LinkedEvents(tuple(unique_events(found.values())), is_complete=not wanted)


def message_ids(event: HistoryEvent) -> frozenset[str]:
    """Return the ids of the event's message: its own, and those in other queues, in logs and of the client."""
    linked = (event.labels.get(name) for name in SAME_MESSAGE)
    # The id of a poll is that of the proxy.
    own = None if event.kind == PROXY_POLL else event.message_id
    return frozenset(one for one in (own, *linked) if one)


def publications_of(event: HistoryEvent) -> frozenset[str]:
    """Return the publications that a connection's batch had."""
    return frozenset(filter(None, event.labels.get("publications", "").split(SEPARATOR)))


def _next_ids(event: HistoryEvent, asked: Collection[str]) -> frozenset[str]:
    return message_ids(event) | (publications_of(event) if event.event_id in asked else frozenset())
