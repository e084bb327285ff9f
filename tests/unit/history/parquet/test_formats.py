"""The formats within Parquet files: Thrift's compact protocol, Snappy, runs of numbers, and damaged pages."""

import pytest

from signalbox.history.parquet.errors import UnreadableParquet
from signalbox.history.parquet.metadata import Chunk, Leaf
from signalbox.history.parquet.pages import column, pages
from signalbox.history.parquet.snappy import decompressed
from signalbox.history.parquet.thrift import ThriftReader


def structure(data: str) -> dict:
    return ThriftReader(bytes.fromhex(data)).structure()


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("15 02 15 03 00", {1: 1, 2: -2}),
        ("05 c801 9601 00", {100: 75}),
        ("11 12 13 7f 00", {1: True, 2: False, 3: 127}),
        ("18 03 616263 00", {1: b"abc"}),
        ("17 0102030405060708 00", {1: bytes.fromhex("0102030405060708")}),
        ("19 25 02 04 00", {1: [1, 2]}),
        ("19 22 01 02 00", {1: [True, False]}),
        ("19 f3 10 " + "01" * 16 + " 00", {1: [1] * 16}),
        ("1b 00 00", {1: {}}),
        ("1b 01 85 01 61 02 00", {1: {b"a": 1}}),
        ("1c 15 02 00 00", {1: {1: 1}}),
        ("1b 01 c5 00 02 00", {1: {}}),
    ],
    ids=[
        *("numbers", "far-field", "flags", "text", "double", "list", "flags-list", "long-list", "map", "text-map"),
        *("structure", "structure-key"),
    ],
)
def test_thrifts_types_are_read(data, found):
    assert structure(data) == found


@pytest.mark.parametrize(("data", "problem"), [("15", "ends within"), ("1e 00", "has the number 14")])
def test_damaged_metadata_is_refused(data, problem):
    with pytest.raises(UnreadableParquet, match=problem):
        structure(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("03 08 616263", b"abc"),
        ("08 04 6162 09 02", b"ab" * 4),
        ("0a 04 6162 1e 0200", b"ab" * 5),
        ("0a 04 6162 1f 02000000", b"ab" * 5),
        ("3e f0 3d " + "61" * 62, b"a" * 62),
        ("c901 f4 c800 " + "61" * 201, b"a" * 201),
        ("06 0c 61626364 02 0400", b"abcda"),
    ],
    ids=["literal", "short-copy", "copy", "long-copy", "long-literal", "longer-literal", "copy-of-one"],
)
def test_snappys_elements_are_decompressed(data, text):
    packed = bytes.fromhex(data)

    assert decompressed(bytes([len(text)]) + packed[1:] if len(text) < 128 else packed) == text


@pytest.mark.parametrize(
    ("data", "problem"), [("05 08 616263", "3 bytes instead of 5"), ("08 04 6162 09 03", "3 bytes back, after 2")]
)
def test_damaged_snappy_is_refused(data, problem):
    with pytest.raises(UnreadableParquet, match=problem):
        decompressed(bytes.fromhex(data))


def leaf(kind: int = 1, levels: int = 0) -> Leaf:
    return Leaf(("n",), kind, levels, 0, 0, None)


def page(body: str, *, kind: int = 0, count: int = 1, encoding: int = 0) -> bytes:
    """Return a page of type `kind` with its header; its numbers are below 64, so that each is one byte."""
    data = bytes.fromhex(body)
    size = 2 * len(data)
    field = "4c" if kind == 2 else "2c"  # the fields 7 and 5, after 3
    header = f"15 {2 * kind:02x} 15 {size:02x} 15 {size:02x} {field} 15 {2 * count:02x} 15 {2 * encoding:02x} 00 00"
    return bytes.fromhex(header) + data


def decoded(data: bytes, of: Leaf) -> list:
    return column(data, Chunk(0, len(data), 0, 1, None, None), of).values


def test_numbers_packed_in_several_bits_and_repeated_numbers_are_positions_in_the_dictionary():
    dictionary = page("0a000000 14000000 1e000000 28000000 32000000", kind=2, count=5)
    packed = page("03 03 88c6fa", count=8, encoding=8)  # eight numbers of three bits: the example of Encodings.md
    repeated = page("03 06 04", count=3, encoding=2)

    assert decoded(dictionary + repeated, leaf()) == [50, 50, 50]
    with pytest.raises(IndexError):
        decoded(dictionary + packed, leaf())  # 0 to 7, and the dictionary has five


def test_a_dictionary_of_one_value_needs_no_bits():
    assert decoded(page("0a000000", kind=2) + page("00", count=3, encoding=8), leaf()) == [10, 10, 10]


def test_a_page_of_nulls_has_levels_only():
    data = page("02000000 0600", count=3, encoding=8)

    assert decoded(data, leaf(levels=1)) == []


@pytest.mark.parametrize(
    ("data", "of", "problem"),
    [
        (page("00", encoding=5), leaf(), "n has the encoding 5"),
        (page("00", kind=1), leaf(), "n has a page of type 1"),
        (page("00"), leaf(kind=0), "no field of an event has the type 0"),
    ],
    ids=["encoding", "page", "type"],
)
def test_what_no_writer_of_history_uses_is_refused(data, of, problem):
    with pytest.raises(UnreadableParquet, match=problem):
        decoded(data, of)


def test_an_unknown_codec_is_refused():
    with pytest.raises(UnreadableParquet, match="has the number 6"):
        list(pages(b"x", 6))
