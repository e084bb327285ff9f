"""Rows as publications: arvados-ws's messages, under topics with the owner."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from signalbox.exchange.messages.properties import MessageProperties
from signalbox.live.bridge.publications import (
    MAXIMUM_BODY_BYTES,
    OMITTED_BYTES,
    message_of,
    row_publication,
    time_text,
    topic_of,
)
from signalbox.live.bridge.rows import LogRow

OWNER, SYSTEM = "zzzzz-j7d0g-0123456789abcde", "zzzzz-tpzed-000000000000000"
COLLECTION, CONTAINER = "zzzzz-4zz18-0123456789abcde", "zzzzz-dz642-0123456789abcde"
AT = datetime(2026, 11, 23, 7, 0, 0, 120_000)  # noqa: DTZ001 - as PostgreSQL's timestamps without a zone


def row(**fields) -> LogRow:
    known = {"object_uuid": COLLECTION, "object_owner_uuid": OWNER, "event_type": "update"}
    return LogRow(7, "zzzzz-57u5n-0123456789abcde", **{**known, "event_at": AT, "created_at": AT, **fields})


def log_row(text: object, **fields) -> LogRow:
    return row(
        object_uuid=CONTAINER, object_owner_uuid=SYSTEM, event_type="stderr", properties={"text": text}, **fields
    )


def test_a_change_is_sent_with_the_fields_and_attributes_of_arvados_ws():
    """services/ws/session_v0.go, EventMessage and sendObjectAttributes."""
    attributes = {"name": "reads", "state": None, "manifest_text": ". 0", "uuid": COLLECTION}
    changed = row(properties={"old_etag": "x", "old_attributes": {}, "new_attributes": attributes, "more": 1})

    assert message_of(changed) == {
        "id": 7,
        "uuid": "zzzzz-57u5n-0123456789abcde",
        "object_uuid": COLLECTION,
        "object_owner_uuid": OWNER,
        "object_kind": "arvados#collection",
        "event_type": "update",
        "event_at": "2026-11-23T07:00:00.12Z",
        "created_at": "2026-11-23T07:00:00.12Z",
        "properties": {"old_attributes": {}, "new_attributes": {"name": "reads", "state": None}},
    }


def test_attributes_of_another_type_are_left_out():
    assert message_of(row(properties={"old_attributes": None, "new_attributes": ["name"]}))["properties"] == {}


def test_a_log_line_is_sent_with_all_of_its_properties():
    properties = {"text": "aligned\n", "node": 3}

    assert message_of(row(properties=properties))["properties"] == properties


def test_an_object_of_an_unknown_kind_has_none():
    assert message_of(row(object_uuid="zzzzz-8i9sb-0123456789abcde"))["object_kind"] == ""
    assert message_of(row(object_uuid=""))["object_kind"] == ""


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (None, None),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 600, timezone(timedelta(hours=1))), "2026-01-02T02:04:05.0006Z"),
    ],
    ids=["absent", "whole second", "fraction in another zone"],
)
def test_times_are_those_of_go(at, text):
    assert time_text(at) == text


@pytest.mark.parametrize(
    ("changed", "topic"),
    [
        (row(), f"record.collection.{OWNER}.{COLLECTION}.update"),
        (log_row("x", requester_uuid=OWNER), f"container.{OWNER}.{CONTAINER}.log.stderr"),
        (log_row("x"), f"container.{SYSTEM}.{CONTAINER}.log.stderr"),
        (row(object_uuid=CONTAINER, requester_uuid=OWNER), f"record.container.{OWNER}.{CONTAINER}.update"),
        (row(properties={"text": "x"}), f"record.collection.{OWNER}.{COLLECTION}.update"),
        (row(requester_uuid="zzzzz-j7d0g-other0000000000"), f"record.collection.{OWNER}.{COLLECTION}.update"),
        (row(object_uuid="", object_owner_uuid="", event_type=""), "record.-.-.-.-"),
        (row(event_type="a.b c#%"), f"record.collection.{OWNER}.{COLLECTION}.a%2Eb%20c%23%25"),
        (row(event_type="x" * 41), f"record.collection.{OWNER}.{COLLECTION}.-"),
    ],
    ids=["change", "log", "log of the system", "state", "text", "owner", "empty", "encoded", "too long"],
)
def test_the_topic_has_the_owner_the_object_and_the_event(changed, topic):
    """The owner of a container is that of its request."""
    assert topic_of(changed) == topic


def test_a_publication_has_the_id_as_a_header():
    publication = row_publication(row())

    assert (publication.id, publication.headers, publication.is_cut) == (7, {"log_id": "7"}, False)
    assert json.loads(publication.body) == message_of(row())


@pytest.mark.parametrize("character", ["x", "é", '"', "😀"], ids=["ascii", "two bytes", "escaped", "pair"])
def test_a_long_text_is_cut_to_the_limit_and_says_how_much_is_left_out(character):
    text = character * MAXIMUM_BODY_BYTES

    publication = row_publication(log_row(text, requester_uuid=OWNER))

    document = json.loads(publication.body)
    kept = document["properties"]["text"]
    assert publication.is_cut
    assert MAXIMUM_BODY_BYTES - 40 < len(publication.body) <= MAXIMUM_BODY_BYTES
    assert text.startswith(kept)
    assert document[OMITTED_BYTES] == (len(text) - len(kept)) * (len(json.dumps(character)) - 2)
    MessageProperties.of_publication(publication.topic, publication.body, publication.headers)


def test_properties_that_are_too_large_without_a_text_are_left_out():
    publication = row_publication(row(properties={"new_attributes": {"name": "x" * MAXIMUM_BODY_BYTES}}))

    document = json.loads(publication.body)
    assert document["properties"] == {}
    assert document[OMITTED_BYTES] > MAXIMUM_BODY_BYTES


def test_a_text_that_is_no_string_is_left_out_when_it_is_too_large():
    assert json.loads(row_publication(log_row(["x"] * MAXIMUM_BODY_BYTES)).body)["properties"] == {}
