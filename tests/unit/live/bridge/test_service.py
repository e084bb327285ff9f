"""The bridge publishes every committed row once, wherever it is killed and however transactions overlap."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.errors import UnavailableError
from signalbox.live.bridge.checkpoints import Checkpoint, StoredCheckpoint
from signalbox.live.bridge.rows import DatabaseRow, IdRange, ObjectRecord, RowContainer
from signalbox.live.bridge.service import READ_IDS, WINDOW_ROWS, ArvadosBridge
from tests.fakes.bridge import NOON, FakeCluster, FakeRealm, Killed, counted_calls, intents

CONTAINER = "zzzzz-dz642-000000000000000"
WRITERS = ("a", "b", "c")
FOREVER, AT_ONCE = timedelta(days=1), timedelta(0)


def bridge(cluster: FakeCluster, realm: FakeRealm, *, patience: timedelta = FOREVER, **settings) -> ArvadosBridge:
    return ArvadosBridge(cluster, realm, now=lambda: NOON, run="1", patience=patience, **{"start": 0, **settings})


def committed(count: int) -> FakeCluster:
    cluster = FakeCluster()
    for _ in range(count):
        cluster.insert("a")
    cluster.commit("a")
    return cluster


def run_until_done(one: ArvadosBridge) -> None:
    one.resume()
    while one.step() or one.is_waiting:
        pass
    one.settle()


def test_rows_are_published_in_windows_after_a_checkpoint():
    cluster, realm = committed(WINDOW_ROWS + 1), FakeRealm()

    run_until_done(bridge(cluster, realm))

    assert realm.published == list(range(1, WINDOW_ROWS + 2))
    assert realm.saved == len(("start", "window", "window", "settled"))
    assert realm.stored == StoredCheckpoint(Checkpoint(WINDOW_ROWS + 1, run="1"), NOON)


def test_more_rows_than_a_read_has_are_all_published():
    cluster, realm = committed(READ_IDS + 10), FakeRealm()

    run_until_done(bridge(cluster, realm))

    assert realm.published == list(range(1, READ_IDS + 11))


def test_a_bridge_without_checkpoint_and_start_publishes_only_new_rows():
    cluster, realm = committed(3), FakeRealm()
    one = bridge(cluster, realm, start=None)
    one.resume()
    cluster.insert("a")
    cluster.commit("a")

    one.step()

    assert realm.published == [4]
    assert one.position == 4
    assert one.statistics.published == 1


def test_a_checkpoint_goes_before_the_start_unless_it_is_ignored_once():
    cluster, realm = committed(5), FakeRealm(stored=StoredCheckpoint(Checkpoint(4), NOON))

    run_until_done(bridge(cluster, realm, start=1))
    assert realm.published == [5]

    again = bridge(cluster, realm, start=3, ignores_checkpoint=True)
    run_until_done(again)
    run_until_done(again)
    assert realm.published == [5, 4, 5]


@pytest.mark.parametrize(("accepted", "whole"), [(6, 2), (4, 1), (5, 1), (1, 0)])
def test_a_bridge_that_is_killed_after_publishing_does_not_publish_again(accepted, whole):
    """Also within a row: the publications of the last one that are missing follow."""
    window = intents(1, 2, 3)
    realm = FakeRealm([*window[:accepted]], StoredCheckpoint(Checkpoint(0, window=window), NOON))
    one = bridge(committed(4), realm)

    run_until_done(one)

    assert realm.accepted == [*intents(1, 2, 3, 4)]
    assert one.statistics.already_published == whole


def test_a_row_with_more_publications_than_a_window_is_a_window():
    requests = RowContainer(CONTAINER, "Queued", is_wanted=True, owners=tuple(f"owner{one}" for one in range(40)))
    cluster, realm = committed(2), FakeRealm()
    record = ObjectRecord("system")
    cluster.rows_by_id[1] = DatabaseRow(1, "", CONTAINER, "", "update", container=requests, record=record)

    run_until_done(bridge(cluster, realm))

    assert [one.id for one in realm.accepted] == [1] * 81 + [2] * 3
    assert realm.saved == len(("start", "first", "second", "settled"))


def test_a_bridge_that_ends_stops_within_a_window_and_continues_there():
    cluster, realm = committed(4), FakeRealm()
    first = bridge(cluster, realm, is_ending=lambda: len(realm.accepted) == len(intents(1, 2)))
    first.resume()
    first.step()
    first.settle()
    assert realm.stored == StoredCheckpoint(Checkpoint(2, run="1"), NOON)

    run_until_done(bridge(cluster, realm))

    assert realm.published == [1, 2, 3, 4]


def test_a_row_that_is_deleted_before_it_is_read_is_left_out():
    cluster, realm = committed(3), FakeRealm()
    one = bridge(cluster, realm)
    one.resume()

    reads = iter(range(2))

    def delete_before_the_second_read() -> None:
        if next(reads) == 1:
            del cluster.rows_by_id[2]

    cluster.before_read = delete_before_the_second_read
    one.step()

    assert realm.published == [1, 3]
    assert one.position == 3


def test_a_row_of_a_transaction_that_takes_too_long_comes_late_and_once():
    cluster, realm = FakeCluster(), FakeRealm()
    cluster.insert("slow")
    cluster.insert("fast")
    cluster.commit("fast")
    one = bridge(cluster, realm, patience=AT_ONCE)
    one.resume()
    while not realm.published:
        one.step()
    one.settle()
    assert realm.published == [2]
    assert one.late_ids == 1
    assert realm.stored == StoredCheckpoint(Checkpoint(2, (IdRange(1, 1),), run="1"), NOON)

    restarted = bridge(cluster, realm, patience=AT_ONCE)
    restarted.resume()
    restarted.step()
    cluster.commit("slow")
    while restarted.step() or restarted.is_waiting:
        pass

    assert realm.published == [2, 1]


operations = st.lists(
    st.tuples(st.sampled_from(["insert", "insert", "commit", "roll_back"]), st.sampled_from(WRITERS)), max_size=40
)
kills = st.sets(st.integers(0, 250), max_size=12)


@pytest.mark.parametrize("patience", [FOREVER, AT_ONCE], ids=["waits", "passes over"])
@given(operations, kills, kills, st.sets(st.integers(0, 150), max_size=6))
def test_every_committed_row_is_published_once(patience, todo, before, after, lost):
    """Transactions go on between any two reads; calls are killed before and after they are done, or get no answer."""
    cluster, realm = FakeCluster(), FakeRealm()
    left = iter([*todo, *(("commit", writer) for writer in WRITERS)])
    cluster.before_read = lambda: go_on(cluster, left)
    realm.before_call = counted_calls(dict.fromkeys(before, Killed))
    realm.after_call = counted_calls(dict.fromkeys(lost, UnavailableError) | dict.fromkeys(after, Killed))

    while not has_published_all(bridge(cluster, realm, patience=patience)):
        pass

    assert sorted(realm.accepted, key=repr) == sorted(intents(*cluster.rows_by_id), key=repr)
    assert cluster.rows_by_id or not any(name == "insert" for name, _ in todo) or rolled_back(todo)
    if patience == FOREVER:
        assert realm.published == sorted(realm.published)


def go_on(cluster: FakeCluster, left: Iterator[tuple[str, str]]) -> None:
    name, writer = next(left, ("", ""))
    if name:
        getattr(cluster, name)(writer)


def has_published_all(one: ArvadosBridge) -> bool:
    """Run a bridge until it is killed, or until more steps than there are operations have found nothing."""
    idle = 0
    try:
        one.resume()
        while idle < 100:
            idle = 0 if one.step() else idle + 1
    except (Killed, UnavailableError):
        return False
    return not one.is_waiting


def rolled_back(todo: Sequence[tuple[str, str]]) -> bool:
    return any(name == "roll_back" for name, _ in todo)
