"""Times, checksums, embedded contents and blocks."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.sarracenia.formats.blocks import Block, Blocks, block_sizes, file_in_blocks
from signalbox.sarracenia.formats.content import Content, embed
from signalbox.sarracenia.formats.identity import Identity, IdentityMethod, InvalidIdentityMethod
from signalbox.sarracenia.formats.times import parse_time, v02_time, v03_time

MOMENT = datetime(2023, 11, 14, 22, 13, 20, 250_000, UTC)


def test_times_have_a_form_in_each_format():
    assert v03_time(MOMENT) == "20231114T221320.25"
    assert v02_time(MOMENT) == "20231114221320.25"
    assert v02_time(MOMENT.replace(microsecond=0)) == "20231114221320"


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [("20231114T221320.2500001", 250_000), ("20231114221320.", 0), ("20231114T221320.9999999", 999_999)],
)
def test_times_are_exact_to_a_microsecond(text, microsecond):
    assert parse_time(text) == MOMENT.replace(microsecond=microsecond)


@pytest.mark.parametrize(
    "text",
    ["", "2023", "20231114T2213", "20231314T221320", "20231114T221320Z", "2023111422132é", "20231114T221320.1e9"],
)
def test_an_invalid_time_is_refused(text):
    with pytest.raises(ValueError, match=r"20|is no time|month"):
        parse_time(text)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_round_trips(moment):
    assert parse_time(v03_time(moment)) == moment
    assert parse_time(v02_time(moment)) == moment


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("md5", Identity("md5", "kAFQmDzST7DWlj99KOF/cg==")),
        (
            "sha512",
            Identity(
                "sha512",
                "3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==",
            ),
        ),
        ("cod,sha512", Identity("cod", "sha512")),
        ("random", Identity("random", "0042")),
        ("arbitrary,v1", Identity("arbitrary", "v1")),
        ("none", None),
    ],
)
def test_the_identity_of_a_content(text, identity):
    """Digests of `abc`: RFC 1321, A.5, and FIPS 180-2, C.1."""
    assert IdentityMethod.parse(text).identity([b"a", b"bc"], random=42) == identity


@pytest.mark.parametrize(
    "text", ["", "sha256", "cod", "cod,", "cod,random", "arbitrary", "arbitrary,", "md5,x", "none,"]
)
def test_an_unknown_method_is_refused(text):
    with pytest.raises(InvalidIdentityMethod):
        IdentityMethod.parse(text)


@pytest.mark.parametrize(
    ("octets", "media_type", "expected"),
    [
        ("é".encode(), "text/plain", Content("utf-8", "é")),
        (b"bulletin", None, Content("base64", "YnVsbGV0aW4=")),
        (b"{}", "application/json", Content("base64", "e30=")),
        (b"\xe9", "text/plain", Content("base64", "6Q==")),
        (b"", "text/plain", Content("utf-8", "")),
    ],
)
def test_a_content_is_text_if_its_media_type_and_its_bytes_are(octets, media_type, expected):
    """sr3 3.3.1, flowcb/gather/file.py, inlineEncoding guess."""
    content = embed(octets, media_type=media_type)

    assert content == expected
    assert content.octets == octets


def test_a_content_must_be_below_the_limit():
    assert embed(b"x" * 4096, media_type=None) is None
    assert embed(b"x" * 4095, media_type=None) is not None
    assert embed(b"xx", media_type=None, limit_bytes=2) is None


@pytest.mark.parametrize(
    ("size_bytes", "sizes"), [(25_000, [10_000, 10_000, 5_000]), (20_000, [10_000, 10_000]), (10_000, []), (0, [])]
)
def test_a_file_larger_than_a_block_is_announced_in_blocks(size_bytes, sizes):
    assert block_sizes(size_bytes, block_bytes=10_000) == sizes


def test_every_block_has_the_whole_manifest():
    """sr3 3.3.1 with blockSize 10k and a file of 25,000 bytes."""
    blocks = [Block(10_000, "AA=="), Block(10_000, "BA=="), Block(5_000, "CA==")]

    announced = file_in_blocks(blocks)

    manifest = {0: blocks[0], 1: blocks[1], 2: blocks[2]}
    assert announced == [Blocks("inplace", 10_000, 3, number, manifest) for number in (0, 1, 2)]
