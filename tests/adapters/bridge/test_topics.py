"""The publications of rows that Arvados' API server writes, read from PostgreSQL: one scheme, in one table."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from signalbox.clients.bridge.postgres import PostgresLogs
from signalbox.live.bridge.publications import MAXIMUM_BODY_BYTES, RowPublication, row_publications
from signalbox.live.bridge.rows import STATE_COLUMNS
from signalbox.live.bridge.topics import log_topic
from tests.docs.markdown import ROOT
from tests.fakes.arvados.cluster import SYSTEM, ArvadosCluster, new_uuid
from tests.fakes.arvados.log_endpoint import State
from tests.postgres import ClusterDatabase

OWNER, OTHER, USER, CONTAINER = (new_uuid(kind) for kind in ("group", "group", "user", "container"))
TABLE_ROW = re.compile(r"^\| `((?:record|container|cache|permission)[.][^`]+)` \|\s*([a-z]*)\s*\|", re.MULTILINE)


@dataclass(slots=True)
class Stage:
    """A cluster, and what the bridge publishes for the rows since the last look."""

    cluster: ArvadosCluster
    logs: PostgresLogs
    seen: int = 0

    def published(self) -> list[RowPublication]:
        ids = self.logs.ids_after(self.seen, limit=1000)
        self.seen = ids[-1] if ids else self.seen
        rows = {row.id: row for row in self.logs.rows(ids)}
        return [one for number in ids for one in row_publications(rows[number])]

    def topics(self, prefix: str) -> list[str]:
        return [one.topic for one in self.published() if one.topic.startswith(prefix)]

    def container_events(self) -> list[str]:
        """Return the owners and events of containers."""
        words = [topic.split(".") for topic in self.topics("container.")]
        return [event if owner == OWNER else f"{event} of {owner}" for _, owner, _, event in words]


@pytest.fixture
def stage(cluster_database: ClusterDatabase) -> Iterator[Stage]:
    with PostgresLogs.connect(cluster_database.dsn) as logs:
        yield Stage(ArvadosCluster(cluster_database), logs)


def document(one: RowPublication) -> Any:
    return json.loads(one.body)


def states(found: Sequence[RowPublication]) -> dict[str, Any]:
    """Return the retained documents by their topics."""
    return {one.topic: document(one) for one in found if one.headers.get("retain") == "true"}


def shape(one: RowPublication) -> tuple[str, str]:
    """Return a topic with placeholders, and `yes` if it is retained."""
    first, *words = one.topic.split(".")
    is_moved = document(one).get("event_type") == "moved" and "id" not in document(one)
    names = {"record": ["<kind>", "<old owner>" if is_moved else "<owner>", "<uuid>"], "cache": ["<kind>", "<uuid>"]}
    names |= {"container": ["<owner>", "<uuid>"], "permission": []}
    placed = [*names[first], *words[len(names[first]) :]]
    if first == "record" and len(placed) > 3 and not is_moved:
        placed[3] = "<event>"
    return ".".join([first, *placed]), "yes" if one.headers.get("retain") else ""


def test_every_row_of_the_table_of_topics_is_published_for_rows_of_a_cluster(stage):
    cluster = stage.cluster
    request, container = cluster.submit(OWNER)
    found = stage.published()
    cluster.cancel(request)
    found += stage.published()
    cluster.prioritize(request, 1)
    cluster.lock(container)
    cluster.run(container)
    cluster.finish(container)
    collection = cluster.create("collection", OWNER, name="reads")
    cluster.update(collection, owner_uuid=OTHER)
    cluster.permit(USER, OWNER)
    found += stage.published()

    log = (log_topic("<owner>", "<uuid>", "name").replace("%3C", "<").replace("%3E", ">").replace("name", "<name>"), "")
    page = (ROOT / "docs" / "arvados.md").read_text()
    assert {*map(shape, found), log} == {*TABLE_ROW.findall(page)}


def test_a_container_has_an_event_of_its_requests_owner_for_each_state(stage):
    _, container = stage.cluster.submit(OWNER)
    stage.cluster.lock(container)
    stage.cluster.unlock(container)
    stage.cluster.lock(container)
    stage.cluster.run(container)
    stage.cluster.update(container, progress=0.5)
    stage.cluster.finish(container)

    # All requests are final when these rows are read, so no `queued` is published: none has a priority.
    assert stage.container_events() == ["locked", "locked", "running", "complete"]


def test_a_queued_container_has_its_event_while_it_is_wanted(stage):
    request, container = stage.cluster.submit(OWNER)
    assert stage.container_events() == ["queued"]

    stage.cluster.lock(container)
    stage.cluster.unlock(container)
    assert stage.container_events() == ["locked", "queued"]

    stage.cluster.cancel(request)
    assert stage.container_events() == ["cancelled"]

    stage.cluster.prioritize(request, 5)
    assert stage.container_events() == ["queued"]


def test_a_request_on_hold_queues_nothing(stage):
    request, _ = stage.cluster.submit(OWNER, priority=0)
    assert stage.container_events() == []

    stage.cluster.prioritize(request, 1)
    assert stage.container_events() == ["queued"]


def test_the_cancelling_of_a_container_is_taken_from_its_last_request(stage):
    """Its own priority changes without a row, and another request may want it."""
    request, container = stage.cluster.submit(OWNER)
    other, _ = stage.cluster.submit(OTHER, container=container)
    stage.published()

    stage.cluster.cancel(request)
    assert stage.container_events() == []

    stage.cluster.delete(other)
    (event,) = [one for one in stage.published() if one.topic.startswith("container.")]
    assert event.topic == f"container.{OWNER}.{container}.cancelled"
    assert document(event)["state"] == "Queued"
    assert document(event)["is_wanted"] is False


def test_a_running_container_is_cancelled_by_its_request_and_again_when_it_has_ended(stage):
    request, container = stage.cluster.submit(OWNER)
    stage.cluster.lock(container)
    stage.cluster.run(container)
    stage.published()

    stage.cluster.cancel(request)
    found = [document(one)["state"] for one in stage.published() if one.topic.endswith(".cancelled")]
    stage.cluster.finish(container, State.CANCELLED)
    found += [document(one)["state"] for one in stage.published() if one.topic.endswith(".cancelled")]

    assert found == ["Running", "Cancelled"]


def test_the_first_container_of_a_request_keeps_its_readers_when_a_second_takes_its_place(stage):
    _, container = stage.cluster.submit(OWNER)
    stage.cluster.lock(container)
    stage.cluster.run(container)
    stage.published()

    other = stage.cluster.retry(container)

    topics = stage.topics("container.")
    assert topics == [f"container.{OWNER}.{container}.cancelled", f"container.{OWNER}.{other}.queued"]


def test_each_owner_of_a_shared_container_gets_its_state(stage):
    _, container = stage.cluster.submit(OWNER)
    stage.cluster.submit(OTHER, container=container)
    stage.published()

    stage.cluster.lock(container)

    found = stage.published()
    assert {one.topic for one in found} == {
        f"cache.container.{container}",
        *(f"container.{owner}.{container}.locked" for owner in (OWNER, OTHER)),
        *(f"record.container.{owner}.{container}" for owner in (OWNER, OTHER)),
        *(f"record.container.{owner}.{container}.update" for owner in (OWNER, OTHER)),
    }
    assert SYSTEM not in "".join(one.topic for one in found)


def test_one_topic_has_the_present_state_of_an_object(stage):
    """Also a row that is read late has the state of the time of reading."""
    collection = stage.cluster.create("collection", OWNER, name="reads", manifest_text="." * 200_000)
    stage.cluster.update(collection, name="aligned", is_trashed=False)

    found = stage.published()
    topic = f"record.collection.{OWNER}.{collection}"
    retained = [one for one in found if one.headers.get("retain")]
    assert [(one.topic, document(one)["name"]) for one in retained] == [(topic, "aligned")] * 2
    state = states(found)[topic]
    assert (state["uuid"], state["owner_uuid"], state["event_type"]) == (collection, OWNER, "update")
    assert state["event_at"] == state["modified_at"] > state["created_at"]
    assert "manifest_text" not in state
    assert [one.is_cut for one in found if one.topic.endswith(".create")] == [False]

    stage.cluster.delete(collection)
    (state,) = states(stage.published()).values()
    assert (state["event_type"], "name" in state) == ("delete", False)


def test_a_move_shows_the_readers_of_the_old_owner_nothing_new(stage):
    collection = stage.cluster.create("collection", OWNER, name="reads")
    stage.published()

    stage.cluster.update(collection, owner_uuid=OTHER, name="secret")

    found = stage.published()
    of_old_owner = [one for one in found if f".{OWNER}." in one.topic]
    assert [one.topic for one in of_old_owner] == [
        f"record.collection.{OWNER}.{collection}.moved",
        f"record.collection.{OWNER}.{collection}",
    ]
    assert not any(OTHER in one.body or "secret" in one.body for one in of_old_owner)
    assert states(found)[f"record.collection.{OTHER}.{collection}"]["name"] == "secret"


def test_a_moved_request_takes_its_container_from_the_readers_of_the_old_owner(stage):
    request, container = stage.cluster.submit(OWNER)
    stage.published()

    stage.cluster.update(request, owner_uuid=OTHER)

    assert {topic for topic in stage.topics("record.") if f".{OWNER}." in topic} == {
        f"record.{kind}.{OWNER}.{uuid}{end}"
        for kind, uuid in (("containerRequest", request), ("container", container))
        for end in ("", ".moved")
    }


@pytest.mark.parametrize(
    ("kind", "before", "after", "is_change"),
    [
        ("link", {"link_class": "permission"}, {"name": "can_write"}, True),
        ("link", {"link_class": "tag"}, {"name": "new"}, False),
        ("group", {}, {"is_trashed": True}, True),
        ("group", {}, {"frozen_by_uuid": USER}, True),
        ("group", {}, {"name": "new"}, False),
        ("user", {}, {"is_admin": True}, True),
        ("user", {}, {"first_name": "new"}, False),
        ("collection", {}, {"is_trashed": True}, False),
    ],
)
def test_the_permission_graph_changes_with_links_groups_and_users(stage, kind, before, after, is_change):
    uuid = stage.cluster.create(kind, OWNER, **before)
    is_new = "permission.graph" in stage.topics("")
    stage.cluster.update(uuid, **after)
    has_changed = "permission.graph" in stage.topics("")
    stage.cluster.delete(uuid)

    is_graph = kind in ("group", "user") or before.get("link_class") == "permission"
    assert (is_new, has_changed, "permission.graph" in stage.topics("")) == (is_graph, is_change, is_graph)


@pytest.mark.parametrize(
    "value",
    ["\0", "\ud800", "x" * 500_000, "é" * 500, {"a": 1}, [[]], 1e308, True, None, "a.b c", f"{CONTAINER}\n"],
    ids=["nul", "half of a pair", "long", "wide", "object", "list", "number", "true", "null", "words", "line"],
)
def test_no_row_of_a_user_stops_the_bridge(stage, value):
    """Each active user may write rows, of any object and with any properties."""
    names = {name for _, columns in STATE_COLUMNS.values() for name in columns}
    attributes = dict.fromkeys((*names, "owner_uuid"), value)
    for kind in ("request", "container", "collection", "group"):
        for old, new in ((attributes, {}), ({}, attributes), (value, value)):
            properties = json.dumps({"old_attributes": old, "new_attributes": new})
            stage.cluster.database.insert(object_uuid=new_uuid(kind), properties=properties)

    found = stage.published()

    assert len({one.id for one in found}) == 12
    assert max(len(one.body) for one in found) <= MAXIMUM_BODY_BYTES
    assert all(len(one.topic) < 255 and one.topic.isascii() and " " not in one.topic for one in found)


def test_rows_that_no_record_has_written_are_events_only(stage):
    """keep-web and dispatchers post them; the text of a dispatcher is sent whole, as arvados-ws sends it."""
    _, container = stage.cluster.submit(OWNER)
    stage.published()
    upload = {"reqPath": "/x", "collection_uuid": new_uuid("collection")}
    stage.cluster.database.insert(object_uuid=USER, event_type="file_upload", properties=json.dumps(upload))
    text = {"text": "no suitable node type\n"}
    stage.cluster.database.insert(object_uuid=container, event_type="dispatch", properties=json.dumps(text))

    found = stage.published()

    assert [one.topic.rpartition(".")[2] for one in found] == ["file_upload", "dispatch"]
    assert found[1].topic == f"record.container.{OWNER}.{container}.dispatch"
    assert [document(one)["properties"] for one in found] == [{}, text]


def forge(stage: Stage, uuid: str, event: str, change: tuple[dict[str, Any], dict[str, Any]], owner: str) -> None:
    """Write a row as any active user may, with a time that no later row has."""
    properties = json.dumps(dict(zip(("old_attributes", "new_attributes"), change, strict=True)))
    columns = {"object_uuid": uuid, "object_owner_uuid": owner, "event_type": event, "properties": properties}
    stage.cluster.database.insert(event_at="2999-01-01", **columns)


@pytest.mark.parametrize("event", ["create", "update", "delete"])
def test_a_row_of_a_user_changes_no_state(stage, event):
    """Neither the attributes, nor whether the object exists, nor who owns it."""
    collection = stage.cluster.create("collection", OWNER, name="reads", is_trashed=False)
    before = states(stage.published())
    change = {"owner_uuid": OWNER, "name": "reads"}, {"owner_uuid": OTHER, "name": "forged", "is_trashed": True}

    forge(stage, collection, event, change, OTHER)

    after = states(stage.published())
    expected = {"event_type": "update" if event == "delete" else event}
    changing = {"log_id": 0, **expected}
    assert {topic: {**state, **changing} for topic, state in after.items()} == {
        topic: {**state, **changing} for topic, state in before.items()
    }
    assert [state["event_type"] for state in after.values()] == [*expected.values()]


def test_a_row_of_a_user_shows_its_author_nothing_of_the_object(stage):
    """A container that no request names any more has no readers but those of the system user."""
    container = stage.cluster.create("container", SYSTEM, state="Running", priority=7)
    request, collection = new_uuid("request"), stage.cluster.create("collection", OWNER, name="reads")
    stage.published()

    forge(stage, container, "update", ({}, {"state": "Running"}), OTHER)
    forge(stage, request, "update", ({"priority": 1}, {"priority": 0, "container_uuid": container}), OTHER)
    forge(stage, collection, "update", ({"owner_uuid": OTHER}, {}), OTHER)

    found = [one for one in stage.published() if f".{OTHER}." in one.topic]
    assert {one.topic for one in found} == {
        f"record.containerRequest.{OTHER}.{request}.update",
        f"record.containerRequest.{OTHER}.{request}",
        f"record.collection.{OTHER}.{collection}.update",
    }
    assert not any("reads" in one.body or "Running" in one.body for one in found)


@pytest.mark.parametrize(
    ("event", "of_request", "old", "new"),
    [
        ("complete", False, {"state": "Running"}, {"state": "Complete"}),
        ("cancelled", False, {"state": "Running"}, {"state": "Cancelled"}),
        ("cancelled", True, {"priority": 1, "state": "Committed"}, {"priority": 0, "state": "Committed"}),
        ("queued", True, {"priority": 0, "state": "Committed"}, {"priority": 1, "state": "Committed"}),
    ],
)
def test_no_row_of_a_user_ends_or_queues_a_container(stage, event, of_request, old, new):
    request, container = stage.cluster.submit(OWNER)
    stage.cluster.lock(container)
    stage.cluster.run(container)
    stage.published()

    named = {"container_uuid": container} if of_request else {}
    change = {**old, **named}, {**new, **named}
    forge(stage, request if of_request else container, "update", change, OWNER)

    assert event not in stage.container_events()
