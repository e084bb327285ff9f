"""The reader of Parquet files, with files of each writer of raw history."""

import pytest

from signalbox.history.parquet.errors import UnreadableParquet
from signalbox.history.parquet.metadata import Leaf, footer_size, parse_footer
from signalbox.history.parquet.pages import BYTE_ARRAY, Column
from signalbox.history.parquet.rows import columns, lists, names_text
from tests.fakes.parquet import INCOMPLETE_ROW, RAW_FILES, raw_file, sample_events


def values(name: str) -> dict[str, list]:
    data = raw_file(name)
    metadata = parse_footer(data)
    (group,) = metadata.groups
    return dict(columns(metadata, group, lambda start, end: data[start:end]))


@pytest.mark.parametrize("name", RAW_FILES)
def test_each_writers_columns_are_read_with_their_nulls_times_and_maps(name):
    found = values(name)

    assert found["version"] == [1] * 300 + [None]
    for column in ("event_id", "occurred_at", "reason", "message_id", "sequence", "latency_ms", "attempt", "source"):
        expected = [getattr(event, column) for event in sample_events()]
        assert found[column] == [*expected, INCOMPLETE_ROW.get(column)], column
    assert found["labels"] == [*(event.labels for event in sample_events()), None]


@pytest.mark.parametrize("name", RAW_FILES)
def test_a_search_of_the_pages_finds_texts_that_a_column_has_and_no_others(name):
    data = raw_file(name)
    metadata = parse_footer(data)
    (group,) = metadata.groups

    def has(text: bytes, *names: str) -> bool:
        return names_text(metadata, group, lambda start, end: data[start:end], names=names, texts=[b"none", text])

    assert has(b"m299", "message_id")
    assert has(b"p297,p298", "topic", "labels")
    assert not has(b"m300", "message_id", "event_id")
    assert not has(b"p297,p298", "message_id")


def test_bytes_that_are_no_parquet_file_are_refused():
    data = raw_file("duckdb-gzip")

    with pytest.raises(UnreadableParquet, match="does not end with PAR1"):
        footer_size(b"PAR1")
    with pytest.raises(UnreadableParquet, match="of which 100 are given"):
        parse_footer(data[-100:])


def test_a_maps_entries_follow_the_levels_of_its_rows():
    leaf = Leaf(("labels", "key_value", "value"), BYTE_ARRAY, 3, 1, 2, None)

    assert list(lists(leaf, Column([0, 0, 0, 1], [0, 1, 3, 2], ["a"]))) == [None, [], ["a", None]]
    assert list(lists(leaf, Column())) == []
