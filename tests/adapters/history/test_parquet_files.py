"""Events by id in Parquet files, as the emulator's Firehose, Hive's library and the job write them."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from signalbox.aws.history.objects import ObjectPart
from signalbox.aws.history.parquet_files import IndexFile, ObjectFile, UnreadableParquet, raw_rows
from signalbox.history.ids import ids_of
from signalbox.history.index.raw_files import events_of_rows
from signalbox.history.stored_event import parse_event
from tests.fakes.parquet import INDEXED_EVENTS, RAW_FILES, index_files, raw_file, sample_events


@pytest.mark.parametrize("name", RAW_FILES)
@pytest.mark.parametrize(
    "ids",
    [{"m004", "none"}, {"proxy_poll:h290:1"}, {"p7"}, {"c5", "m005"}, {"routed:m011:q_2:delivered"}, {"alice"}, {"m"}],
    ids=["message", "event", "one-of-a-label", "message-and-label", "event-of-a-message", "no-id", "part-of-an-id"],
)
def test_a_raw_files_events_that_name_an_id_are_found_whole(name, ids):
    expected = [event for event in sample_events() if not ids_of(event).isdisjoint(ids)]

    assert list(events_of_rows(raw_rows(raw_file(name), ids), ids)) == expected


@pytest.mark.parametrize("name", RAW_FILES)
def test_rows_of_a_raw_file_without_an_id_are_not_decoded(name):
    assert raw_rows(raw_file(name), {"m300"}) == []


def index_file() -> bytes:
    (data,) = (data for name, data in index_files().items() if name.endswith(".parquet"))
    return data


def opened(data: bytes, tail: int) -> tuple[IndexFile, list[int]]:
    """Return an index file whose last bytes are known, and the sizes of the parts that it fetches."""
    fetched: list[int] = []

    def fetch(start: int, end: int) -> bytes:
        fetched.append(end - start)
        return data[start:end]

    return IndexFile(ObjectFile(ObjectPart(data[-tail:], len(data) - min(tail, len(data))), fetch)), fetched


@pytest.mark.parametrize("id_", ["m001", "m899", "c500", "p600", "proxy_poll:h890:1", "m900", "a", "zz"])
def test_an_index_file_has_all_events_of_an_id(id_):
    file, _ = opened(index_file(), 4_000)

    assert [parse_event(json.loads(text)) for text in file.events(id_)] == [
        event for event in sample_events(INDEXED_EVENTS) if id_ in ids_of(event)
    ]


def test_of_an_index_file_one_part_is_fetched_once(monkeypatch):
    data = index_file()
    file, fetched = opened(data, 64 * 1024)
    assert fetched == []

    file, fetched = opened(data, 4_000)
    known = len(fetched)  # pyarrow reads the last 64 KiB, here all of the small file
    file.file.parts = file.file.parts[:1]
    first, again = file.events("m401"), file.events("m401")

    assert first == again != []
    assert len(fetched) == known + 1
    assert fetched[-1] < len(data) / 2


def test_the_index_has_a_row_for_an_event_id_only_where_the_message_id_does_not_find_it():
    file, _ = opened(index_file(), 4_000)

    assert file.events("routed:m001:q_1:delivered") == []


def test_a_file_is_read_from_any_position():
    file = ObjectFile(ObjectPart(b"cdef", 2), lambda start, end: b"abcdef"[start:end])

    assert (file.readable(), file.seekable(), file.seek(-3, 2), file.read(2), file.tell()) == (True, True, 3, b"de", 5)
    assert (file.seek(-4, 1), file.read(), file.read()) == (1, b"bcdef", b"")


@pytest.mark.parametrize("data", [b"PAR1", raw_file("duckdb-gzip")[:-100], b""], ids=["magic", "cut", "empty"])
def test_an_object_that_is_no_parquet_file_is_refused(data):
    with pytest.raises(UnreadableParquet, match="no Parquet file of the history"):
        raw_rows(data, {"m004"})


def test_a_file_whose_labels_are_no_map_is_refused():
    file = io.BytesIO()
    pq.write_table(pa.table({"event_id": ["m004"], "message_id": ["m004"], "labels": ["m004"]}), file)

    with pytest.raises(UnreadableParquet, match="labels are string"):
        raw_rows(file.getvalue(), {"m004"})


def test_a_file_of_other_columns_is_refused():
    with pytest.raises(UnreadableParquet, match="event_id"):
        raw_rows(index_file(), {"m004"})


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"id": ["m004"]},
        {"event": ["{}"], "id": ["m004"]},
        {"id": [4], "event": ["{}"]},
        {"id": pa.array([None], pa.string()), "event": ["{}"]},
    ],
    ids=["none", "one", "in another order", "numbers", "no ids"],
)
def test_a_file_that_is_none_of_the_index_is_refused(columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)

    with pytest.raises(UnreadableParquet, match="no Parquet file of the index"):
        opened(file.getvalue(), 4_000)
