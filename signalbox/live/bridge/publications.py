"""The publication of a log row: arvados-ws's message, under a topic that contains the owner."""

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

from signalbox.live.bridge.rows import LogRow

LOG_ID = "log_id"  # the header with the row's id
# Below the limit of an event for a connection, with room for the rest of the EVENT. SQS takes 1 MiB.
MAXIMUM_BODY_BYTES = 120_000
OMITTED_BYTES = "_omitted_bytes"
ABSENT_WORD = "-"
MAXIMUM_WORD = 40  # a topic has 255 bytes; a UUID has 27 characters
# The attributes that arvados-ws sends of an object (services/ws/session_v0.go, sendObjectAttributes).
SENT_ATTRIBUTES = ("is_trashed", "name", "owner_uuid", "portable_data_hash", "requesting_container_uuid", "state")
ATTRIBUTES = ("old_attributes", "new_attributes")
CONTAINER_INFIX = "dz642"
# The infixes of UUIDs (schema_controller.rb, uuidPrefix: of the MD5 of the class's name).
KINDS = {
    "gj3su": "apiClientAuthorization",
    "fngyi": "authorizedKey",
    "4zz18": "collection",
    CONTAINER_INFIX: "container",
    "xvhdp": "containerRequest",
    "oss07": "credential",
    "j7d0g": "group",
    "bi6l4": "keepService",
    "o0j2j": "link",
    "57u5n": "log",
    "tpzed": "user",
    "gv0sa": "userAgreement",
    "2x53u": "virtualMachine",
    "7fd4e": "workflow",
}


@dataclass(frozen=True, slots=True)
class RowPublication:
    """The publication of a row; `is_cut` if a part of its properties is left out."""

    id: int
    topic: str
    body: str
    is_cut: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def row_publication(row: LogRow) -> RowPublication:
    """Return the publication of a row."""
    message = message_of(row)
    body = _text(message)
    is_cut = len(body) > MAXIMUM_BODY_BYTES
    return RowPublication(
        row.id, topic_of(row), _cut(message, len(body)) if is_cut else body, is_cut, {LOG_ID: str(row.id)}
    )


def topic_of(row: LogRow) -> str:
    """Return the topic of a row, by the scheme of examples/arvados/topics.py.

    A container's log lines have one topic for each stream, and everything else is a record change.
    """
    is_container = _infix(row.object_uuid) == CONTAINER_INFIX
    owner = (row.requester_uuid if is_container else "") or row.object_owner_uuid
    uuid, event = _word(row.object_uuid), _word(row.event_type)
    if is_container and _has_text(row):
        return f"container.{_word(owner)}.{uuid}.log.{event}"
    return f"record.{_word(KINDS.get(_infix(row.object_uuid), ''))}.{_word(owner)}.{uuid}.{event}"


def message_of(row: LogRow) -> dict[str, object]:
    """Return arvados-ws's message without `msgID`, and with `created_at`, which its filters read.

    services/ws/session_v0.go, EventMessage.
    """
    kind = KINDS.get(_infix(row.object_uuid))
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


def _properties(row: LogRow) -> Mapping[str, object]:
    if _has_text(row):
        return row.properties
    found = {name: row.properties.get(name) for name in ATTRIBUTES}
    return {
        name: {key: attributes[key] for key in SENT_ATTRIBUTES if key in attributes}
        for name, attributes in found.items()
        if isinstance(attributes, Mapping)
    }


def _has_text(row: LogRow) -> bool:
    return row.properties.get("text") is not None


def _infix(uuid: str) -> str:
    return uuid[6:11]


def _word(text: str) -> str:
    """Return a text as a word of a topic; one that is empty or too long to be a name of Arvados is a dash."""
    word = quote(text, safe="!$&'()+,/:;=?@-_~").replace(".", "%2E")
    return word if 0 < len(word) <= MAXIMUM_WORD else ABSENT_WORD


def _cut(message: Mapping[str, object], size: int) -> str:
    """Return the body of a message with the beginning of its text only, and with the number of bytes left out."""
    properties = message["properties"]
    text = properties.get("text") if isinstance(properties, Mapping) else None
    marked = {**message, OMITTED_BYTES: size}
    if not isinstance(text, str):
        return _text({**marked, "properties": {}})
    room = MAXIMUM_BODY_BYTES - len(_text({**marked, "properties": {"text": ""}}))
    kept = bisect_right(range(len(text)), room, key=lambda count: len(_text(text[:count])) - 2) - 1
    cut = {**message, "properties": {"text": text[:kept]}}
    return _text({**cut, OMITTED_BYTES: size - len(_text(cut))})


def _text(document: object) -> str:
    """Return a document as ASCII JSON, all of whose characters SQS accepts."""
    return json.dumps(document, separators=(",", ":"))
