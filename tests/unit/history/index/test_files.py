"""Events by id in raw files and in blocks of the index."""

import pytest

from signalbox.history.ids import ids_of
from signalbox.history.index.blocks import blocks_of
from signalbox.history.index.raw_files import raw_events
from signalbox.history.parquet.metadata import parse_footer
from tests.fakes.parquet import INDEXED_EVENTS, RAW_FILES, index_files, raw_file, sample_events


@pytest.mark.parametrize("name", RAW_FILES)
@pytest.mark.parametrize(
    "ids", [{"m004", "none"}, {"proxy_poll:h290:1"}, {"p7"}, {"c5", "m005"}, {"routed:m011:q_2:delivered"}, {"alice"}]
)
def test_a_raw_files_events_that_name_an_id_are_found_whole(name, ids):
    expected = [event for event in sample_events() if not ids_of(event).isdisjoint(ids)]

    assert list(raw_events(raw_file(name), ids)) == expected


def index_file() -> bytes:
    (data,) = (data for name, data in index_files().items() if name.endswith(".parquet"))
    return data


@pytest.mark.parametrize("id_", ["m001", "m899", "c500", "p600", "proxy_poll:h890:1"])
def test_a_block_has_all_events_of_an_id(id_):
    data = index_file()
    blocks = blocks_of(parse_footer(data), id_)

    assert blocks is not None
    assert list(blocks.events(id_, data[blocks.start : blocks.end])) == [
        event for event in sample_events(INDEXED_EVENTS) if id_ in ids_of(event)
    ]


def test_a_lookup_reads_a_small_part_of_a_file():
    data = index_file()
    metadata = parse_footer(data)
    blocks = blocks_of(metadata, "m401")

    assert blocks is not None
    assert len(metadata.groups) > 2
    assert blocks.end - blocks.start < len(data) / 2


def test_an_id_beyond_all_bounds_has_no_block():
    metadata = parse_footer(index_file())

    assert blocks_of(metadata, "a") is None
    assert blocks_of(metadata, "zz") is None


def test_the_index_has_a_row_for_an_event_id_only_where_the_message_id_does_not_find_it():
    data = index_file()
    blocks = blocks_of(parse_footer(data), "routed:m001:q_1:delivered")

    assert blocks is None or not list(blocks.events("routed:m001:q_1:delivered", data[blocks.start : blocks.end]))
