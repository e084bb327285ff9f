"""The ids that an event names, and the keys under which the index of events has it."""

from signalbox.history.event import HistoryEvent

LINK_LABELS = ("client", "copy", "file", "proxy", "publication", "publications")
"""The labels whose value is an id, or several ids separated by commas."""
SEPARATOR = ","
EVENT_ID_SEPARATOR = ":"


def ids_of(event: HistoryEvent) -> frozenset[str]:
    """Return the event's own id, its message's id, and the ids in its labels."""
    linked = (one for name in LINK_LABELS for one in event.labels.get(name, "").split(SEPARATOR))
    return frozenset(one for one in (event.event_id, event.message_id, *linked) if one)


def search_keys(id_: str) -> frozenset[str]:
    """Return the keys of the index to search for the events that name an id.

    The index has an event under its message id and the ids in its labels. It has the event under its `event_id`, too,
    unless the message id is a part of that id, as in `routed:<message id>:<queue>`: most event ids need no row.
    """
    return frozenset((id_, *filter(None, id_.split(EVENT_ID_SEPARATOR))))
