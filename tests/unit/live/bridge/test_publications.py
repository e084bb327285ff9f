"""Rows as publications: arvados-ws's messages, under topics with the owner."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from signalbox.exchange.messages.properties import MessageProperties
from signalbox.live.bridge.publications import (
    MAXIMUM_BODY_BYTES,
    OMITTED_BYTES,
    message_of,
    row_publications,
    time_text,
)
from signalbox.live.bridge.rows import DatabaseRow, ObjectRecord, RowContainer

OTHER = "zzzzz-j7d0g-0123456789abcdf"
OWNER, REQUEST = "zzzzz-j7d0g-0123456789abcde", "zzzzz-xvhdp-0123456789abcde"
COLLECTION, CONTAINER = "zzzzz-4zz18-0123456789abcde", "zzzzz-dz642-0123456789abcde"
AT = datetime(2026, 11, 23, 7, 0, 0, 120_000)  # noqa: DTZ001 - as PostgreSQL's timestamps without a zone


def row(**fields) -> DatabaseRow:
    known = {"object_uuid": COLLECTION, "object_owner_uuid": OWNER, "event_type": "update"}
    return DatabaseRow(7, "zzzzz-57u5n-0123456789abcde", **{**known, "event_at": AT, "created_at": AT, **fields})


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
        (row(object_uuid="", object_owner_uuid="", event_type=""), "record.-.-.-.-"),
        (row(event_type="a.b c#%"), f"record.collection.{OWNER}.{COLLECTION}.a%2Eb%20c%23%25"),
        (row(event_type="x" * 41), f"record.collection.{OWNER}.{COLLECTION}.-"),
        (row(object_uuid=CONTAINER), f"record.container.{OWNER}.{CONTAINER}.update"),
    ],
    ids=["change", "empty", "encoded", "too long", "a container that no longer exists"],
)
def test_the_topic_has_the_owner_the_object_and_the_event(changed, topic):
    assert row_publications(changed)[0].topic == topic


def test_each_publication_of_a_row_has_its_id_and_is_accepted_once():
    found = row_publications(row())

    assert {one.id for one in found} == {7}
    assert {one.headers["log_id"] for one in found} == {"7"}
    assert json.loads(found[0].body) == message_of(row())
    assert len({one.deduplication_id for one in found}) == len(found) == len({one.topic for one in found})


def test_properties_that_are_too_large_are_left_out():
    name = "x" * MAXIMUM_BODY_BYTES

    event = row_publications(row(properties={"new_attributes": {"name": name}}))[0]

    document = json.loads(event.body)
    assert event.is_cut
    assert document["properties"] == {}
    assert document[OMITTED_BYTES] > MAXIMUM_BODY_BYTES
    MessageProperties.of_publication(event.topic, event.body, event.headers)


@pytest.mark.parametrize("slash", ["/", "%2F", "\\/"])
def test_no_publication_of_a_row_has_a_token(slash):
    """A dispatcher's text may be that of crunch-run."""
    token = slash.join(["v2", "zzzzz-gj3su-0123456789abcde", "secretofthecontainer"])
    rows = [
        row(event_type="dispatch", properties={"text": f'container token "{token}"'}),
        row(
            properties={"old_attributes": {"owner_uuid": token}, "new_attributes": {"name": token, "state": "Final"}},
            record=ObjectRecord(OWNER, {"name": token, "state": "Final"}),
        ),
    ]

    found = [one for changed in rows for one in row_publications(changed)]

    assert "secretof" not in repr(found)
    assert [one.is_cut for one in found if one.topic.endswith((".dispatch", ".update"))] == [True, True]
    assert '"state":"Final"' in found[2].body


def test_a_state_has_the_objects_own_record_and_nothing_of_the_row_but_its_event():
    record = ObjectRecord(OTHER, {"name": "reads", "version": 2, "modified_at": "2026-11-23T07:00:00.12Z", "log": None})
    changed = row(event_at=AT + timedelta(days=1), properties={"new_attributes": {"name": "forged"}}, record=record)

    _, state, _ = row_publications(changed)

    assert state.topic == f"record.collection.{OTHER}.{COLLECTION}"
    times = dict.fromkeys(("modified_at", "event_at"), "2026-11-23T07:00:00.12Z")
    own = {"uuid": COLLECTION, "owner_uuid": OTHER, "name": "reads", "version": 2}
    assert json.loads(state.body) == {**own, **times, "event_type": "update", "log_id": 7}


def test_an_object_without_a_record_is_gone():
    state = json.loads(row_publications(row(event_at=AT + timedelta(days=1)))[1].body)

    assert (state["event_type"], state["event_at"]) == ("delete", "2026-11-23T07:00:00.12Z")


def test_a_container_that_is_gone_between_two_reads_has_no_state():
    found = row_publications(row(object_uuid=CONTAINER, record=ObjectRecord("zzzzz-tpzed-000000000000000")))

    assert [one.topic for one in found if one.headers.get("retain")] == []


def test_an_object_of_a_kind_without_a_table_has_events_only():
    key = "zzzzz-fngyi-0123456789abcde"

    assert [one.topic for one in row_publications(row(object_uuid=key))] == [
        f"record.authorizedKey.{OWNER}.{key}.update",
        f"cache.authorizedKey.{key}",
    ]


def test_a_row_of_a_request_without_priority_and_with_an_ended_container_is_no_event_of_the_container():
    ended = RowContainer(CONTAINER, "Complete", owners=(OWNER,))
    changed = row(object_uuid=REQUEST, properties={"old_attributes": {"priority": 1}}, container=ended)

    assert not [one for one in row_publications(changed) if one.topic.startswith("container.")]
