"""The topics of the example of an Arvados cluster: each has the owner, and is in the table of `docs/live.md`."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).parents[2]
OWNER, OTHER, UUID = "zzzzz-j7d0g-000000000000001", "zzzzz-j7d0g-000000000000002", "zzzzz-4zz18-000000000000003"


@pytest.fixture(scope="module")
def topics() -> ModuleType:
    spec = importlib.util.spec_from_file_location("arvados_topics", CHECKOUT / "examples" / "arvados" / "topics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_topic_about_an_object_has_its_owner_and_is_in_the_table(topics: ModuleType) -> None:
    published = [
        topics.container_log(OWNER, UUID, "stdout", "one line"),
        *topics.container_state(OWNER, UUID, "Complete"),
        *topics.record_changed("collection", OWNER, UUID, event="update", changed={"name": "reads"}),
    ]

    assert [one.topic for one in published if f".{OWNER}.{UUID}" not in one.topic] == []
    page = (CHECKOUT / "docs" / "live.md").read_text()
    described = ("container.<owner>.<uuid>.log.<stream>", "container.<owner>.<uuid>.record", "latest.<kind>.<owner>")
    assert [text for text in described if text not in page] == []
    assert published[1].headers == {"retain": "true"}


def test_a_move_shows_the_readers_of_the_old_owner_nothing_new(topics: ModuleType) -> None:
    """Who may read only the old owner get neither the new owner nor the new name."""
    published = topics.record_changed(
        "collection", OTHER, UUID, event="update", changed={"name": "secret"}, old_owner=OWNER
    )

    assert [one.topic for one in published] == [
        f"record.collection.{OWNER}.{UUID}.moved",
        f"latest.collection.{OWNER}.{UUID}",
        f"cache.collection.{OWNER}.{UUID}",
        f"record.collection.{OTHER}.{UUID}.update",
        f"latest.collection.{OTHER}.{UUID}",
        f"cache.collection.{OTHER}.{UUID}",
    ]
    assert [one.topic for one in published if one.headers] == [published[1].topic, published[4].topic]
    assert json.loads(published[1].body) == {"uuid": UUID, "owner_uuid": OWNER, "event_type": "moved"}
    assert not any(OTHER in one.body or "secret" in one.body for one in published[:3])


def test_an_update_without_a_move_has_three_publications(topics: ModuleType) -> None:
    assert len(topics.record_changed("group", OWNER, UUID, event="update", changed={}, old_owner=OWNER)) == 3
