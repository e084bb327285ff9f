"""The log rows of events, and their messages."""

import json
from dataclasses import replace
from typing import Any

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.arvados.rows import row_message, row_of
from signalbox.live.arvados.timestamps import nanoseconds, nanoseconds_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.messages import Payload, PublicationId
from tests.unit.live.session.stage import NOW

DOCUMENT = {
    "id": 17,
    "uuid": "zzzzz-57u5n-000000000000017",
    "object_uuid": "zzzzz-4zz18-000000000000000",
    "object_owner_uuid": "zzzzz-j7d0g-000000000000000",
    "object_kind": "arvados#collection",
    "event_type": "update",
    "event_at": "2026-11-21T19:59:59Z",
    "created_at": "2026-11-21T19:59:59.5Z",
    "properties": {"new_attributes": {"name": "sömething"}},
}


def event(*arguments: object, **keywords: Any) -> LoggedEvent:
    return LoggedEvent(PublicationId(1), RoutingKey("record.a"), NOW, Payload(arguments, keywords))


def test_a_message_has_the_fields_of_the_original_and_no_others() -> None:
    row = row_of(event({**DOCUMENT, "secret": "not sent"}))

    assert row is not None
    sent = json.loads(row_message(row, 3))
    assert sent == {"msgID": 3, **{name: value for name, value in DOCUMENT.items() if name != "created_at"}}
    assert row_message(row, 3).startswith('{"msgID":3,"id":17,"uuid":')


def test_a_row_may_be_published_as_keywords() -> None:
    assert row_of(event(**DOCUMENT)) == row_of(event(DOCUMENT))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, nanoseconds("2026-11-21T19:59:59.5Z")),
        ({"created_at": None}, nanoseconds("2026-11-21T19:59:59Z")),
        ({"created_at": "yesterday", "event_at": 5}, nanoseconds_of(NOW)),
    ],
)
def test_a_row_without_a_time_of_creation_has_another(changed: dict[str, object], expected: int) -> None:
    row = row_of(event({**DOCUMENT, **changed}))

    assert row is not None
    assert row.created_at == expected


def test_a_row_without_an_event_type_passes_no_filter_of_it() -> None:
    row = row_of(event({"id": 1, "event_type": 5}))

    assert row is not None
    assert row.event_type == ""


@pytest.mark.parametrize("number", [None, "17", 17.0, True, 0, -1, 2**63])
def test_an_event_without_a_log_id_is_no_row(number: object) -> None:
    assert row_of(event({**DOCUMENT, "id": number})) is None


def test_other_payloads_are_no_rows() -> None:
    assert row_of(event()) is None
    assert row_of(event("text")) is None
    assert row_of(event(DOCUMENT, DOCUMENT)) is None
    assert row_of(event("text", **DOCUMENT)) is None
    assert row_of(replace(event(), omitted_bytes=200_000)) is None
