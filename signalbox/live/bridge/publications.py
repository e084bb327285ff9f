"""The publications of a log row: arvados-ws's message, the object's state, and what follows from the change."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from signalbox.live.bridge import topics
from signalbox.live.bridge.log_text import has_token
from signalbox.live.bridge.rows import NEW, OLD, STATE_COLUMNS, DatabaseRow, RowContainer
from signalbox.live.log.payloads import RETAIN_HEADER, RETAINED

LOG_ID = "log_id"  # the header with the row's id
# Below the limit of an event for a connection, with room for the rest of the EVENT. SQS takes 1 MiB.
MAXIMUM_BODY_BYTES = 120_000
OMITTED_BYTES = "_omitted_bytes"
MOVED = "moved"
CREATE, UPDATE, DELETE = "create", "update", "delete"
# The attributes that arvados-ws sends of an object (services/ws/session_v0.go, sendObjectAttributes).
SENT_ATTRIBUTES = ("is_trashed", "name", "owner_uuid", "portable_data_hash", "requesting_container_uuid", "state")
MAXIMUM_ATTRIBUTE = 500  # characters of an attribute of a state
# None is in a state before one of a lower number (services/api/app/models/container.rb, State_transitions).
STATES = {"Queued": 0, "Locked": 0, "Running": 1, "Complete": 2, "Cancelled": 3}
ENDED = STATES["Complete"]
# Changes of these attributes change who may read what (lib/update_permissions.rb, and readable_by).
PERMISSION_ATTRIBUTES = ("owner_uuid", "is_trashed", "trash_at", "frozen_by_uuid", "is_active", "is_admin")
PERMISSION_LINK = "permission"


@dataclass(frozen=True, slots=True)
class RowPublication:
    """A publication of a row; `is_cut` if the row's properties are left out because of their size or a token."""

    id: int
    topic: str
    body: str
    is_cut: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def deduplication_id(self) -> str:
        """Return the id by which SQS accepts the publication once."""
        return f"log-{self.id}-{hashlib.sha256(self.topic.encode()).hexdigest()[:32]}"


def row_publications(row: DatabaseRow) -> list[RowPublication]:
    """Return the publications of a row, each with a topic of its own."""
    found: dict[str, RowPublication] = {}
    for one in _every(row):
        found.setdefault(one.topic, one)
    return list(found.values())


def _every(row: DatabaseRow) -> Iterator[RowPublication]:
    for owner in _owners(row):
        yield _event(row, topics.event_topic(owner, row.object_uuid, row.event_type))
    if row.event_type not in (CREATE, UPDATE, DELETE):
        return
    yield from _states(row)
    yield _publication(row, topics.cache_topic(row.object_uuid), {"uuid": row.object_uuid})
    yield from _container_events(row)
    if _changes_permissions(row):
        yield _publication(row, topics.PERMISSION_GRAPH, {}, is_retained=True)


def _owners(row: DatabaseRow) -> tuple[str, ...]:
    """Return whose readers get the row: of a container those of its requests."""
    is_container = topics.kind_of(row.object_uuid) == topics.CONTAINER
    return row.container.owners if is_container and row.container else (row.object_owner_uuid,)


def _event(row: DatabaseRow, topic: str) -> RowPublication:
    message = message_of(row)
    body = _text(message)
    is_cut = row.omitted_bytes > 0 or len(body) > MAXIMUM_BODY_BYTES or has_token(body.encode())
    if is_cut:
        body = _text({**message, "properties": {}, OMITTED_BYTES: row.omitted_bytes or len(body)})
    return RowPublication(row.id, topic, body, is_cut, {LOG_ID: str(row.id)})


def _states(row: DatabaseRow) -> Iterator[RowPublication]:
    """Yield the object's present state for its readers, and that it is gone for those of other owners in the row."""
    uuid, kind, old_owner = row.object_uuid, topics.kind_of(row.object_uuid), row.old.get("owner_uuid")
    if kind not in STATE_COLUMNS:
        return
    owners = _present_owners(row)
    has_old_owner = row.event_type == UPDATE and old_owner not in (row.object_owner_uuid, *owners)
    if has_old_owner and isinstance(old_owner, str) and len(old_owner) <= topics.MAXIMUM_WORD:
        yield from _moved(row, uuid, old_owner)
        container = row.container
        if kind == topics.REQUEST and container is not None and old_owner not in container.owners:
            yield from _moved(row, container.uuid, old_owner)
    if row.record is None:
        yield _state(row, uuid, row.object_owner_uuid, {"event_type": DELETE})
        return
    event_type = row.event_type if row.event_type in (CREATE, UPDATE) else UPDATE
    attributes = {name: one for name, one in row.record.attributes.items() if _is_short(one)}
    for owner in owners:
        yield _state(row, uuid, owner, {"event_type": event_type, **attributes})


def _present_owners(row: DatabaseRow) -> tuple[str, ...]:
    """Return whose readers may read the object, as the cluster's tables say."""
    if row.record is None:
        return ()
    if topics.kind_of(row.object_uuid) == topics.CONTAINER:
        return row.container.owners if row.container else ()
    return (row.record.owner_uuid,)


def _is_short(attribute: object) -> bool:
    if isinstance(attribute, str):
        return len(attribute) <= MAXIMUM_ATTRIBUTE and not has_token(attribute.encode(errors="replace"))
    return isinstance(attribute, (bool, int, float))


def _moved(row: DatabaseRow, uuid: str, owner: str) -> Iterator[RowPublication]:
    """Yield the publications for the readers of an old owner: neither the new owner nor an attribute."""
    gone = {"uuid": uuid, "owner_uuid": owner, "event_type": MOVED}
    yield _publication(row, topics.event_topic(owner, uuid, MOVED), gone)
    yield _state(row, uuid, owner, {"event_type": MOVED})


def _state(row: DatabaseRow, uuid: str, owner: str, attributes: Mapping[str, object]) -> RowPublication:
    """Return an object's state: its time is that of its record, or when Arvados stored the row."""
    at = attributes.get("modified_at") or time_text(row.created_at)
    document = {"uuid": uuid, "owner_uuid": owner, **attributes, "event_at": at}
    return _publication(row, topics.state_topic(owner, uuid), document, is_retained=True)


def _container_events(row: DatabaseRow) -> Iterator[RowPublication]:
    container, kind = row.container, topics.kind_of(row.object_uuid)
    if container is None:
        return
    if kind == topics.CONTAINER and (row.omitted_bytes or row.has_changed("state")):
        state = container.state if row.omitted_bytes else str(row.new.get("state", ""))
        # Without a request's priority, a container is on hold: the next priority of a request has another row.
        was_reached = state in STATES and STATES[state] <= STATES.get(container.state, -1)
        if was_reached and (state != "Queued" or container.is_wanted):
            yield from _container_event(row, state.lower(), container, state)
    if kind == topics.REQUEST and STATES.get(container.state, ENDED) < ENDED and row.has_changed("priority"):
        yield _publication(row, topics.cache_topic(container.uuid), {"uuid": container.uuid})
        was_wanted, is_wanted = _is_wanted(row.old), _is_wanted(row.new)
        if was_wanted and not container.is_wanted:
            yield from _container_event(row, "cancelled", container, container.state)
        elif is_wanted and container.is_wanted and row.old.get("state") == "Committed" and container.state == "Queued":
            yield from _container_event(row, "queued", container, container.state)


def _container_event(row: DatabaseRow, event: str, container: RowContainer, state: str) -> Iterator[RowPublication]:
    for owner in container.owners:
        body = {"uuid": container.uuid, "state": state, "is_wanted": container.is_wanted}
        yield _publication(row, topics.container_topic(owner, container.uuid, event), body)


def _is_wanted(request: Mapping[str, object]) -> bool:
    priority = request.get("priority")
    return isinstance(priority, int) and priority > 0


def _changes_permissions(row: DatabaseRow) -> bool:
    kind = topics.kind_of(row.object_uuid)
    if kind == "link":
        return PERMISSION_LINK in (row.old.get("link_class"), row.new.get("link_class"))
    return kind in ("group", "user") and (row.event_type != UPDATE or row.has_changed(*PERMISSION_ATTRIBUTES))


def _publication(
    row: DatabaseRow, topic: str, document: Mapping[str, object], *, is_retained: bool = False
) -> RowPublication:
    body = _text({"event_at": time_text(row.event_at), **document, LOG_ID: row.id})
    retained = {RETAIN_HEADER: RETAINED} if is_retained else {}
    return RowPublication(row.id, topic, body, headers={LOG_ID: str(row.id), **retained})


def message_of(row: DatabaseRow) -> dict[str, object]:
    """Return arvados-ws's message without `msgID`, and with `created_at`, which its filters read.

    services/ws/session_v0.go, EventMessage.
    """
    kind = topics.kind_of(row.object_uuid)
    return {
        "id": row.id,
        "uuid": row.uuid,
        "object_uuid": row.object_uuid,
        "object_owner_uuid": row.object_owner_uuid,
        "object_kind": f"arvados#{kind}" if kind else "",
        "event_type": row.event_type,
        "event_at": time_text(row.event_at),
        "created_at": time_text(row.created_at),
        "properties": _properties(row),
    }


def time_text(at: datetime | None) -> str | None:
    """Return a time as Go's RFC3339Nano writes it: a fraction without its trailing zeros, if there is one."""
    if at is None:
        return None
    whole = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    fraction = f".{whole.microsecond:06}".rstrip("0") if whole.microsecond else ""
    return f"{whole:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _properties(row: DatabaseRow) -> Mapping[str, object]:
    """Return the properties that arvados-ws sends: all of a row with a text, such as a dispatcher's."""
    if row.properties.get("text") is not None:
        return row.properties
    attributes = {name: row.properties.get(name) for name in (OLD, NEW)}
    return {
        name: {key: found[key] for key in SENT_ATTRIBUTES if key in found}
        for name, found in attributes.items()
        if isinstance(found, Mapping)
    }


def _text(document: object) -> str:
    """Return a document as ASCII JSON, all of whose characters SQS accepts."""
    return json.dumps(document, separators=(",", ":"))
