"""The log rows that the events of a realm carry, and the messages that Arvados' clients get for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from signalbox.live.arvados.requests import MAXIMUM_LOG_ID
from signalbox.live.arvados.timestamps import nanoseconds, nanoseconds_of
from signalbox.live.log.documents import json_text
from signalbox.live.log.events import LoggedEvent

# The fields of a message after `msgID`, in the order of arvados/arvados, services/ws/session_v0.go, `EventMessage`.
FIELDS = (*("id", "uuid", "object_uuid", "object_owner_uuid", "object_kind", "event_type", "event_at", "properties"),)


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row of Arvados' table `logs`: its `id` orders all rows, `created_at` is in nanoseconds."""

    id: int
    event_type: str
    created_at: int
    fields: Mapping[str, object] = field(hash=False)


def row_of(event: LoggedEvent) -> LogRow | None:
    """Return the row that an event carries, or None: then it is no event of this protocol.

    A row is an object with an `id`, published as a JSON body, as the only argument or as keywords. `created_at` is only
    for filters; without it the row's `event_at` counts, and otherwise the time of the publication.
    """
    arguments, keywords = event.payload.arguments, event.payload.keywords
    document = arguments[0] if len(arguments) == 1 and not keywords else keywords
    if not isinstance(document, Mapping) or (arguments and keywords):
        return None
    number, event_type = document.get("id"), document.get("event_type")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= MAXIMUM_LOG_ID:
        return None
    moments = (_moment(document.get(name)) for name in ("created_at", "event_at"))
    created_at = next((moment for moment in moments if moment is not None), nanoseconds_of(event.at))
    fields = {name: document[name] for name in FIELDS if name in document}
    return LogRow(number, event_type if isinstance(event_type, str) else "", created_at, fields)


def row_message(row: LogRow, number: int) -> str:
    """Return the message for a row; `number` counts the messages of a connection from 1."""
    return json_text({"msgID": number, **row.fields})


def _moment(value: object) -> int | None:
    return nanoseconds(value) if isinstance(value, str) else None
