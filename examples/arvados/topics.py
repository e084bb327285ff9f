"""The events of an Arvados cluster and their topics; `docs/live.md` lists the subscribers of each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

RETAINED = {"retain": "true"}


@dataclass(frozen=True)
class Publication:
    """A message for a live exchange. The header `retain` makes it the latest state of its topic."""

    topic: str
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


def container_log(container: str, stream: str, text: str) -> Publication:
    """Return the publication of log lines; `stream` is stdout, stderr or a stream of Crunch."""
    return Publication(f"container.{container}.log.{stream}", text)


def system_log(host: str, service: str, level: str, text: str) -> Publication:
    """Return the publication of a line of a service's log."""
    return Publication(f"system.{host}.{service}.log", _json({"level": level, "text": text}))


def container_state(container: str, state: str, *, progress: float | None = None) -> list[Publication]:
    """Return the publications of a new state or progress: the retained record, and an event named after the change."""
    record = {"uuid": container, "state": state, "progress": progress}
    happened = {"Queued": "queued", "Cancelled": "cancelled", "Complete": "finished"}.get(state, "changed")
    return [
        Publication(f"container.{container}.record", _json(record), RETAINED),
        Publication(f"container.{container}.{happened}", _json(record)),
    ]


def record_changed(kind: str, owner: str, uuid: str, *, event: str, changed: Mapping[str, object]) -> list[Publication]:
    """Return the publications of a record that was created, updated or deleted.

    The first has a topic for subscribers of a kind, of an owner or of the object, the second is the retained state of
    the object, and the third invalidates caches.
    """
    body = _json({"uuid": uuid, "owner_uuid": owner, "event_type": event, **changed})
    return [
        Publication(f"record.{kind}.{owner}.{uuid}.{event}", body),
        Publication(f"latest.{kind}.{uuid}", body, RETAINED),
        Publication(f"cache.{kind}.{uuid}", _json({"invalid": uuid})),
    ]


def permissions_updated(generation: int) -> Publication:
    """Return the publication of a new permission graph."""
    return Publication("permission.graph", _json({"generation": generation}), RETAINED)


def _json(document: Mapping[str, object]) -> str:
    return json.dumps({name: value for name, value in document.items() if value is not None})
