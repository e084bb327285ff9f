"""What Arvados has to tell, and to which topics: `docs/live.md` says who subscribes to what."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

RETAINED = {"retain": "true"}


@dataclass(frozen=True)
class Publication:
    """A message for a live exchange: a topic, a body, and whether it is the topic's latest state."""

    topic: str
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


def container_log(container: str, stream: str, text: str) -> Publication:
    """Return lines of a container's log; `stream` is stdout, stderr or one of Crunch's own."""
    return Publication(f"container.{container}.log.{stream}", text)


def system_log(host: str, service: str, level: str, text: str) -> Publication:
    """Return a line of a service's log."""
    return Publication(f"system.{host}.{service}.log", _json({"level": level, "text": text}))


def container_state(container: str, state: str, *, progress: float | None = None) -> list[Publication]:
    """Return that a container's state or progress has changed: its latest record, and what happened, by name."""
    record = {"uuid": container, "state": state, "progress": progress}
    happened = {"Queued": "queued", "Cancelled": "cancelled", "Complete": "finished"}.get(state, "changed")
    return [
        Publication(f"container.{container}.record", _json(record), RETAINED),
        Publication(f"container.{container}.{happened}", _json(record)),
    ]


def record_changed(kind: str, owner: str, uuid: str, *, event: str, changed: Mapping[str, object]) -> list[Publication]:
    """Return that a record was created, updated or deleted, with what concerns subscribers of it.

    Of all records of a kind, of an owner, and of the one object; its latest state is kept, and caches are told.
    """
    body = _json({"uuid": uuid, "owner_uuid": owner, "event_type": event, **changed})
    return [
        Publication(f"record.{kind}.{owner}.{uuid}.{event}", body),
        Publication(f"latest.{kind}.{uuid}", body, RETAINED),
        Publication(f"cache.{kind}.{uuid}", _json({"invalid": uuid})),
    ]


def permissions_updated(generation: int) -> Publication:
    """Return that the permission graph is another one now."""
    return Publication("permission.graph", _json({"generation": generation}), RETAINED)


def _json(document: Mapping[str, object]) -> str:
    return json.dumps({name: value for name, value in document.items() if value is not None})
