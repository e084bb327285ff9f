"""The table `logs` in a real PostgreSQL: transactions that overlap, notifications, lost connections, rights."""

import json
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from signalbox.clients.bridge.postgres import (
    MAXIMUM_PROPERTIES,
    DatabaseRefused,
    DatabaseUnavailable,
    PostgresLogs,
    parse_properties,
)
from signalbox.live.bridge.publications import row_publications
from signalbox.live.bridge.rows import IdRange
from signalbox.live.bridge.service import ArvadosBridge
from tests.fakes.bridge import NOON, FakeRealm
from tests.patience import wait_for
from tests.postgres import ClusterDatabase

CONTAINER = "zzzzz-dz642-000000000000000"


@pytest.fixture
def logs(cluster_database: ClusterDatabase) -> Iterator[PostgresLogs]:
    with PostgresLogs.connect(cluster_database.dsn) as logs:
        yield logs


def bridge(logs: PostgresLogs, realm: FakeRealm, patience: timedelta = timedelta(days=1)) -> ArvadosBridge:
    one = ArvadosBridge(logs, realm, now=lambda: NOON, run="1", patience=patience, start=0)
    one.resume()
    return one


def test_rows_are_read_with_their_columns(cluster_database, logs):
    properties = {"text": "no suitable node type"}
    number = cluster_database.insert(
        object_uuid=CONTAINER, uuid="zzzzz-57u5n-0", event_type="dispatch", properties=json.dumps(properties)
    )

    (row,) = logs.rows([number, number + 1])

    assert (row.id, row.uuid, row.object_uuid, row.event_type) == (number, "zzzzz-57u5n-0", CONTAINER, "dispatch")
    assert row.object_owner_uuid == "zzzzz-j7d0g-000000000000000"
    assert row.properties == properties
    assert row.event_at is not None
    assert row.created_at is not None


@pytest.mark.parametrize("at", ["20000-01-01", "infinity", "0044-03-15 BC"])
def test_a_record_has_any_time_of_postgresql(cluster_database, logs, at):
    insert = b"INSERT INTO collections (uuid, owner_uuid, trash_at) VALUES ('zzzzz-4zz18-000000000000000', 'x', %s)"
    cluster_database.connection.execute(insert, [at])

    (row,) = logs.rows([cluster_database.insert()])

    assert row.record is not None
    assert row.record.owner_uuid == "x"
    assert str(row.record.attributes["trash_at"]).endswith("Z")


@pytest.mark.parametrize("at", ["20000-01-01", "infinity", "-infinity", "0044-03-15 BC"])
def test_a_time_that_python_does_not_have_is_none(cluster_database, logs, at):
    (row,) = logs.rows([cluster_database.insert(event_at=at)])

    assert row.event_at is None


def test_absent_columns_are_empty(cluster_database, logs):
    number = cluster_database.insert(uuid=None, object_uuid=None, object_owner_uuid=None, event_type=None)

    (row,) = logs.rows([number])

    assert (row.uuid, row.object_uuid, row.object_owner_uuid, row.event_type) == ("", "", "", "")
    assert row.properties == {}


def test_properties_may_be_jsonb(cluster_database, logs):
    cluster_database.connection.execute(b"ALTER TABLE logs ALTER COLUMN properties TYPE jsonb USING properties::jsonb")
    number = cluster_database.insert(properties='{"text": "x"}')

    (row,) = logs.rows([number])

    assert row.properties == {"text": "x"}


def test_unreadable_properties_are_counted_and_left_out(cluster_database, logs):
    number = cluster_database.insert(properties="{")

    (row,) = logs.rows([number])

    assert row.properties == {}
    assert logs.unreadable == 1


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        (None, {}),
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ("---\ntext: |\n  x\n", {"text": "x\n"}),
        ("--- {at: 2026-11-23 07:00:00, 1: .nan}", {"at": "2026-11-23 07:00:00", "1": None}),
        ("--- {[1]: 2}", None),
        ('{"a": NaN}', {"a": None}),
        ('{"a": -1e999, "b": 1e9}', {"a": None, "b": 1e9}),
        ("--- !ruby/object:Object {}", None),
        ("[1]", None),
        ("[" * 100_000, None),
    ],
    ids=[
        "null",
        "empty",
        "json",
        "yaml",
        "yaml with a time",
        "yaml with a key",
        "not a number",
        "a number without an end",
        "yaml with a class",
        "a list",
        "deep",
    ],
)
def test_properties_are_json_or_yaml(text, properties):
    assert parse_properties(text) == properties


def test_ids_are_read_in_ascending_order(cluster_database, logs):
    numbers = [cluster_database.insert() for _ in range(3)]

    assert logs.newest_id() == numbers[-1]
    assert list(logs.ids_after(numbers[0], limit=1)) == numbers[1:2]
    assert sorted(logs.ids_within([IdRange(0, numbers[0]), IdRange(numbers[2], 10**12)])) == [numbers[0], numbers[2]]


def test_properties_of_many_bytes_are_not_read(cluster_database, logs):
    """Each user may write rows of 128 MB."""
    large = cluster_database.insert(object_uuid=CONTAINER, properties=json.dumps({"text": "x" * MAXIMUM_PROPERTIES}))
    cluster_database.connection.execute(b"INSERT INTO containers (uuid, state) VALUES (%s, 'Running')", [CONTAINER])

    (row,) = logs.rows([large])

    assert (row.properties, row.omitted_bytes) == ({}, MAXIMUM_PROPERTIES + len('{"text": ""}'))
    event, *others = row_publications(row)
    assert json.loads(event.body)["_omitted_bytes"] == row.omitted_bytes
    assert [one.topic for one in others if one.topic.endswith(".running")] == [f"container.-.{CONTAINER}.running"]


def test_an_empty_table_has_no_newest_row(logs):
    assert logs.newest_id() == 0


def test_only_transactions_that_write_to_the_table_are_writers(cluster_database, logs):
    with cluster_database.transaction() as reader, cluster_database.transaction() as elsewhere:
        reader.execute(b"SELECT * FROM logs")
        elsewhere.execute(b"INSERT INTO container_requests (owner_uuid) VALUES ('x')")
        assert logs.writers() == set()
        with cluster_database.transaction() as writer:
            cluster_database.insert(writer)

            assert len(logs.writers()) == 1
        wait_for(lambda: logs.writers() == set(), "the end of the writer")


def test_a_row_that_commits_later_with_a_smaller_id_is_published_before_the_others(cluster_database, logs):
    realm = FakeRealm()
    one = bridge(logs, realm)
    with cluster_database.transaction() as slow, cluster_database.transaction() as failing:
        first = cluster_database.insert(slow)
        cluster_database.insert(failing)
        third = cluster_database.insert()
        assert not one.step()
        failing.rollback()
        assert not one.step()
        assert realm.published == []

        slow.commit()
        wait_for(lambda: one.step() and not one.is_waiting, "the rows")

    assert realm.published == [first, third]


def test_a_row_of_a_transaction_that_takes_too_long_is_published_when_it_commits(cluster_database, logs):
    realm = FakeRealm()
    one = bridge(logs, realm, patience=timedelta(0))
    with cluster_database.transaction() as slow:
        first = cluster_database.insert(slow)
        second = cluster_database.insert()
        wait_for(one.step, "the row behind the gap")
        assert (realm.published, one.late_ids) == ([second], 1)

        slow.commit()
        wait_for(one.step, "the late row")

    assert realm.published == [second, first]


def test_a_notification_ends_the_wait(cluster_database, logs):
    number = cluster_database.insert()

    logs.wait(600)

    assert logs.newest_id() == number


def test_a_name_is_locked_by_one_connection(cluster_database, logs):
    with PostgresLogs.connect(cluster_database.dsn) as other:
        assert logs.try_lock("xs_lab.fifo")
        assert not other.try_lock("xs_lab.fifo")
        assert other.try_lock("xs_other.fifo")


def test_a_lost_connection_is_unavailable(cluster_database, logs):
    cluster_database.drop_connections("bridge")

    with pytest.raises(DatabaseUnavailable, match="PostgreSQL"):
        logs.newest_id()
    with pytest.raises(DatabaseUnavailable):
        logs.wait(600)


def test_a_server_that_does_not_answer_is_unavailable(tmp_path):
    with pytest.raises(DatabaseUnavailable), PostgresLogs.connect(f"host={tmp_path} dbname=x user=x"):
        pass


def test_the_bridge_needs_no_right_to_write(cluster_database, logs):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        logs.connection.execute(b"SET default_transaction_read_only = off").connection.execute(b"DELETE FROM logs")


@pytest.mark.parametrize("table", ["collections", "containers", "container_requests", "users", "workflows"])
def test_the_bridge_needs_no_right_to_other_columns(logs, table):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        logs.connection.execute(f"TABLE {table}".encode())


def test_a_missing_right_is_refused(cluster_database, logs):
    cluster_database.connection.execute(b"REVOKE SELECT ON logs FROM bridge")

    with pytest.raises(DatabaseRefused, match="permission denied"):
        logs.newest_id()


def test_an_invalid_connection_string_is_refused_without_being_quoted():
    with pytest.raises(DatabaseRefused) as refused, PostgresLogs.connect("postgresql//bridge:secret@host/arvados"):
        pass

    assert "secret" not in str(refused.value)
