"""The events of an Arvados cluster and their topics; `docs/live.md` lists the subscribers of each.

Every topic about an object has the UUID of its owner, a user or a group, because who may read an object in Arvados is
who may read its owner. One grant of `record..{group}.` serves every project.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

RETAINED = {"retain": "true"}
MOVED = "moved"  # the event for the readers of the owner that an object had before


@dataclass(frozen=True)
class Publication:
    """A message for a live exchange. The header `retain` makes it the latest state of its topic."""

    topic: str
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


def container_log(owner: str, container: str, stream: str, text: str) -> Publication:
    """Return the publication of log lines; `stream` is stdout, stderr or a stream of Crunch.

    `owner` owns the container request. A container that runs for requests of several owners has its publications once
    for each of them.
    """
    return Publication(f"container.{owner}.{container}.log.{stream}", text)


def system_log(host: str, service: str, level: str, text: str) -> Publication:
    """Return the publication of a line of a service's log."""
    return Publication(f"system.{host}.{service}.log", _json({"level": level, "text": text}))


def container_state(owner: str, container: str, state: str, *, progress: float | None = None) -> list[Publication]:
    """Return the publications of a new state or progress: the retained record, and an event named after the change."""
    record = {"uuid": container, "state": state, "progress": progress}
    happened = {"Queued": "queued", "Cancelled": "cancelled", "Complete": "finished"}.get(state, "changed")
    return [
        Publication(f"container.{owner}.{container}.record", _json(record), RETAINED),
        Publication(f"container.{owner}.{container}.{happened}", _json(record)),
    ]


def record_changed(
    kind: str, owner: str, uuid: str, *, event: str, changed: Mapping[str, object], old_owner: str | None = None
) -> list[Publication]:
    """Return the publications of a record that was created, updated or deleted.

    The first has a topic for subscribers of a kind, of an owner or of the object, the second is the retained state of
    the object, and the third invalidates caches. With another `old_owner` the record moved: who may read the old owner
    gets `moved` in the same three topics, without the new owner and without the new attributes, which that reader may
    not be permitted to know. The retained state below the old owner then says only that the object is gone.
    """
    body = _json({"uuid": uuid, "owner_uuid": owner, "event_type": event, **changed})
    publications = _of_owner(kind, owner, uuid, event, body)
    if old_owner is None or old_owner == owner:
        return publications
    gone = _json({"uuid": uuid, "owner_uuid": old_owner, "event_type": MOVED})
    return _of_owner(kind, old_owner, uuid, MOVED, gone) + publications


def _of_owner(kind: str, owner: str, uuid: str, event: str, body: str) -> list[Publication]:
    return [
        Publication(f"record.{kind}.{owner}.{uuid}.{event}", body),
        Publication(f"latest.{kind}.{owner}.{uuid}", body, RETAINED),
        Publication(f"cache.{kind}.{owner}.{uuid}", _json({"invalid": uuid})),
    ]


def permissions_updated(generation: int) -> Publication:
    """Return the publication of a new permission graph."""
    return Publication("permission.graph", _json({"generation": generation}), RETAINED)


def _json(document: Mapping[str, object]) -> str:
    return json.dumps({name: value for name, value in document.items() if value is not None})
