"""Payloads in v02 and v03: pairs measured on sr3 3.3.1, and what must hold for every announcement."""

import json
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.sarracenia.formats.announcement import Announcement, FileOperation
from signalbox.sarracenia.formats.blocks import Block, Blocks
from signalbox.sarracenia.formats.content import Content
from signalbox.sarracenia.formats.identity import Identity
from signalbox.sarracenia.formats.payloads import Format, Payload, announcement, payload

LINE = "20231114221320.25 https://e/ a%20b/c%23d.txt"
FILE = Announcement(
    published_at=datetime(2023, 11, 14, 22, 13, 20, 250_000, UTC),
    base_url="https://e/",
    path="a b/c#d.txt",
    source="Weather",
    size_bytes=31,
    modified_at=datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
    mode="644",
)
HEADERS = {"mtime": "20231114221320", "mode": "644", "source": "Weather", "parts": "1,31,1,0,0"}
NAME_MD5 = "c9fbffed4d08d53e7e262a73ae133397"
NAME_SHA512 = (
    "fd7fcd7b274f42e31b9cba77727b13d11bc3d561633734fb5203587c5f875c29"
    "319f304e52cd0b958283c692e614a0d2fc58c32a09a9222d4767487ed6d52c78"
)
LINK_SHA512 = (
    "9c980608a2d7cd2a53582c9f89f5ddc5dcf84ed76819aea3c1423e45a3ec49f1"
    "7adda6e5fa4e61f1e4111b22f0795ea9617100ac9780190b26705d092e397aad"
)
SHORT = Identity("sha512", "TZd/AA==")
MANIFEST = {0: Block(10_000, "AA=="), 1: Block(10_000, "BA=="), 2: Block(5_000, "CA==")}
# What sr3 3.3.1 has in its headers for each; a link's target, and the `r`, are where we write what it only reads.
MEASURED = {
    "no identity": ({}, {"sum": f"n,{NAME_MD5}"}),
    "sha512": ({"identity": SHORT}, {"sum": "s,4d977f00"}),
    "md5": (
        {"identity": Identity("md5", "1B2M2Y8AsgTpgAmY7PhCfg==")},
        {"sum": "d,d41d8cd98f00b204e9800998ecf8427e"},
    ),
    "on download": ({"identity": Identity("cod", "sha512")}, {"sum": "z,s"}),
    "random": ({"identity": Identity("random", "0042")}, {"sum": "0,0042"}),
    "arbitrary": ({"identity": Identity("arbitrary", "hello there")}, {"sum": "a,hello there"}),
    "link": ({"operation": FileOperation(link="../t")}, {"sum": f"L,{LINK_SHA512}", "link": "../t"}),
    "removed": ({"operation": FileOperation(removed=True)}, {"sum": f"R,{NAME_SHA512}"}),
    "removed directory": (
        {"operation": FileOperation(removed=True, directory=True)},
        {"sum": f"r,{NAME_SHA512}"},
    ),
    "directory": ({"operation": FileOperation(directory=True)}, {"sum": f"m,{NAME_SHA512}"}),
    "renamed": (
        {"identity": SHORT, "operation": FileOperation(renamed_from="old name")},
        {"oldname": "old name", "sum": "s,4d977f00"},
    ),
    "renamed directory": (
        {"operation": FileOperation(renamed_from="old", directory=True)},
        {"oldname": "old", "sum": f"m,{NAME_SHA512}"},
    ),
    "more fields": (
        {"content_type": "text/plain", "retrieve_path": "r/p", "others": {"to_clusters": "ALL"}},
        {"contentType": "text/plain", "retrievePath": "r/p", "to_clusters": "ALL", "sum": f"n,{NAME_MD5}"},
    ),
}


@pytest.mark.parametrize(("fields", "headers"), MEASURED.values(), ids=MEASURED)
def test_v02_equals_the_messages_that_sr3_sends_and_reads(fields, headers):
    announced = replace(FILE, **fields)

    sent = payload(announced, Format.V02)

    assert sent == Payload(LINE, {**HEADERS, **headers}, "text/plain")
    assert announcement(sent) == announced


@pytest.mark.parametrize(
    ("number", "size_bytes", "parts"), [(1, 10_000, "i,10000,3,10000,1"), (2, 5_000, "i,10000,3,5000,2")]
)
def test_a_block_in_v02_equals_sr3s_and_omits_the_other_blocks(number, size_bytes, parts):
    own = MANIFEST[number]
    announced = replace(
        FILE,
        size_bytes=size_bytes,
        identity=Identity("sha512", own.identity),
        blocks=Blocks("inplace", 10_000, 3, number, MANIFEST),
    )

    sent = payload(announced, Format.V02)

    assert sent.headers["parts"] == parts
    assert announcement(sent) == replace(announced, blocks=Blocks("inplace", 10_000, 3, number, {number: own}))


def test_parts_of_the_first_sarracenia_contain_the_size_of_the_last_block():
    middle = announcement(Payload(LINE, {"parts": "p,10000,3,5000,1"}, "text/plain"))
    even = announcement(Payload(LINE, {"parts": "p,10000,3,0,2"}, "text/plain"))

    assert middle.blocks == Blocks("partitioned", 10_000, 3, 1, {1: Block(10_000, "")})
    assert even.size_bytes == 10_000


def test_a_block_without_a_manifest_entry_has_the_size_of_the_message():
    blocks = Blocks("separate", 10_000, 3, 1, {})

    assert payload(replace(FILE, blocks=blocks), Format.V02).headers["parts"] == "p,10000,3,31,1"
    assert payload(replace(FILE, size_bytes=None, blocks=blocks), Format.V02).headers["parts"] == "p,10000,3,0,1"


def test_v02_omits_embedded_content():
    """sr3 3.3.1, postformat/v02.py."""
    announced = replace(FILE, content=Content("utf-8", "x"))

    assert payload(announced, Format.V02) == payload(FILE, Format.V02)


def test_identity_methods_without_a_letter_are_omitted_in_v02():
    assert payload(replace(FILE, identity=Identity("crc", "1")), Format.V02).headers["sum"] == f"n,{NAME_MD5}"
    assert payload(replace(FILE, identity=Identity("cod", "crc")), Format.V02).headers["sum"] == "z,n"


def test_an_escaped_path_is_decoded_unlike_in_sr3():
    assert announcement(Payload("20231114221320 https://e/a%20b/ c%23/d%20e more", {}, None)) == Announcement(
        datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), "https://e/a b/", "c#/d e"
    )


def test_headers_are_texts():
    announced = replace(FILE, size_bytes=None, others={"geometry": {"type": "Point"}, "sensed": 3})

    assert payload(announced, Format.V02).headers["geometry"] == '{"type": "Point"}'


def test_a_link_that_sr3_sent_in_v02_has_lost_its_target():
    assert announcement(Payload(LINE, {"sum": f"L,{LINK_SHA512}"}, None)).operation == FileOperation(link="")


V03 = {
    "pubTime": "20231114T221320.25",
    "baseUrl": "https://e/",
    "relPath": "a b/c#d.txt",
    "size": 31,
    "mtime": "20231114T221320",
    "mode": "644",
    "source": "Weather",
}
V03_MEASURED = {
    "plain": ({}, {}),
    "identity": ({"identity": SHORT}, {"identity": {"method": "sha512", "value": "TZd/AA=="}}),
    "removed directory": (
        {"operation": FileOperation(removed=True, directory=True)},
        {"fileOp": {"remove": "", "directory": ""}},
    ),
    "link": ({"operation": FileOperation(link="../t")}, {"fileOp": {"link": "../t"}}),
    "renamed": ({"operation": FileOperation(renamed_from="old")}, {"fileOp": {"rename": "old"}}),
    "content": ({"content": Content("utf-8", "x")}, {"content": {"encoding": "utf-8", "value": "x"}}),
    "empty content": ({"content": Content("base64", "")}, {"content": {"encoding": "base64", "value": ""}}),
    "block": (
        {"blocks": Blocks("inplace", 10_000, 3, 2, MANIFEST)},
        {
            "blocks": {
                "method": "inplace",
                "size": 10_000,
                "number": 2,
                "manifest": {
                    "0": {"size": 10_000, "identity": "AA=="},
                    "1": {"size": 10_000, "identity": "BA=="},
                    "2": {"size": 5_000, "identity": "CA=="},
                },
            }
        },
    ),
}


@pytest.mark.parametrize(("fields", "more"), V03_MEASURED.values(), ids=V03_MEASURED)
def test_v03_equals_the_messages_that_sr3_sends_and_reads(fields, more):
    announced = replace(FILE, **fields)

    sent = payload(announced, Format.V03)

    assert (json.loads(sent.body), sent.headers, sent.content_type) == ({**V03, **more}, {}, "application/json")
    assert announcement(sent) == announced


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"size": "31"}, {}),
        ({"retPath": "r/p"}, {"retrieve_path": "r/p"}),
        ({"integrity": {"method": "md5", "value": "TZd/\nAA=="}}, {"identity": Identity("md5", "TZd/AA==")}),
        ({"identity": {"method": "cod", "value": "md5"}}, {"identity": Identity("cod", "md5")}),
        ({"size": None, "parts": "1,31,1,0,0"}, {}),
        (
            {"parts": "i,31,2,5,0"},
            {"blocks": Blocks("inplace", 31, 2, 0, {0: Block(31, "")})},
        ),
        ({"fileOp": {"rename": "o", "mkdir": ""}}, {"operation": FileOperation(renamed_from="o", directory=True)}),
        (
            {"blocks": {"method": "inplace", "size": 9, "number": 0, "count": 2}},
            {"blocks": Blocks("inplace", 9, 2, 0, {})},
        ),
        ({"geometry": {"type": "Point"}}, {"others": {"geometry": {"type": "Point"}}}),
    ],
    ids=["size", "path", "line break", "cod", "whole", "block", "mkdir", "no manifest", "others"],
)
def test_v03_of_older_senders_is_parsed(fields, expected):
    assert announcement(Payload(json.dumps({**V03, **fields}), {}, "application/json")) == replace(FILE, **expected)


@pytest.mark.parametrize(
    ("received", "form"),
    [
        (Payload("{}", {}, "application/json"), Format.V03),
        (Payload(' {"a": 1}', {}, None), Format.V03),
        (Payload(LINE, {}, None), Format.V02),
        (Payload("{}", {}, "text/plain"), Format.V02),
    ],
)
def test_the_format_is_detected_by_content_type_else_by_the_body(received, form):
    assert received.format == form


digests = st.binary(min_size=1, max_size=64).map(lambda octets: b64encode(octets).decode())
identities = st.one_of(
    st.builds(Identity, st.sampled_from(["sha512", "md5"]), digests),
    st.builds(Identity, st.just("cod"), st.sampled_from(["sha512", "md5"])),
    st.builds(Identity, st.sampled_from(["random", "arbitrary"]), st.text(min_size=1)),
)
paths = st.text(st.sampled_from("aé温/.#* _-"), min_size=1, max_size=20)
moments = st.datetimes(timezones=st.just(UTC))
operations = st.one_of(
    st.builds(FileOperation, link=paths),
    st.builds(FileOperation, renamed_from=paths),
    st.sampled_from([FileOperation(removed=True, directory=d) for d in (True, False)]),
    paths.map(lambda path: FileOperation(renamed_from=path, directory=True)),
)
texts = st.none() | st.text()
announcements = st.builds(
    Announcement,
    published_at=moments,
    base_url=paths,
    path=paths,
    source=texts,
    size_bytes=st.none() | st.integers(0, 10**17),
    modified_at=st.none() | moments,
    accessed_at=st.none() | moments,
    mode=texts,
    content_type=texts,
    retrieve_path=texts,
    others=st.dictionaries(st.sampled_from(["to_clusters", "from_cluster", "x"]), st.text()),
)


@given(
    announcements,
    st.none() | identities,
    st.none() | operations,
    st.none() | st.builds(Content, st.just("utf-8"), st.text()),
)
def test_v03_round_trips(announced, identity, operation, content):
    announced = replace(announced, identity=identity, operation=operation, content=content)

    assert announcement(payload(announced, Format.V03)) == announced


@given(announcements, identities | operations)
def test_v02_round_trips_except_for_content_and_combined_operations(announced, kind):
    announced = replace(announced, **{"identity" if isinstance(kind, Identity) else "operation": kind})

    assert announcement(payload(announced, Format.V02)) == announced
