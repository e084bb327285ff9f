"""The bridge list: its file format, and the built-in one."""

import pytest

from signalbox.rendezvous.wire.bridges import (
    DEFAULT_BRIDGES,
    DEFAULT_FINGERPRINT,
    InvalidBridgeList,
    parse_bridges,
    parse_fingerprint,
)
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage

LINE = (
    '{"displayName":"default", "webSocketAddress":"wss://snowflake.torproject.net/",'
    ' "fingerprint":"2B280B23E1107BB62ABFC40DDCC8824814F80A72"}'
)
OTHER = '{"displayName":"b","webSocketAddress":"wss://02.example/","fingerprint":"' + "0a" * 32 + '"}'


def test_a_fingerprint_of_20_or_32_bytes_in_any_case_has_one_form():
    assert parse_fingerprint("ab" * 20) == "AB" * 20
    assert parse_fingerprint("aB" * 32) == "AB" * 32


@pytest.mark.parametrize(
    "text",
    ["", "ab" * 19, "ab" * 21, "ab" * 19 + "a", "zz" * 20, "ab " * 13 + "a", " " + "ab" * 19 + "a", "٣" * 40],
    ids=["empty", "short", "long", "odd", "not hexadecimal", "with spaces", "with a space", "foreign digits"],
)
def test_anything_else_is_not_a_fingerprint(text):
    with pytest.raises(InvalidMessage, match=r"^bridge fingerprint invalid$"):
        parse_fingerprint(text)


def test_the_built_in_list_equals_upstreams():
    assert parse_bridges(LINE + "\n") == DEFAULT_BRIDGES


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_each_line_is_a_bridge(end):
    bridges = parse_bridges(LINE + "\n" + OTHER + end)

    assert bridges == {
        DEFAULT_FINGERPRINT: "wss://snowflake.torproject.net/",
        parse_fingerprint("0a" * 32): "wss://02.example/",
    }


def test_an_empty_list_has_no_bridge():
    assert parse_bridges("") == {}


def test_the_last_of_two_lines_with_one_fingerprint_counts():
    bridges = parse_bridges(LINE + "\n" + LINE.replace("snowflake.", "new."))

    assert bridges == {DEFAULT_FINGERPRINT: "wss://new.torproject.net/"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "unexpected end of JSON input"),
        ("null", "bridge fingerprint invalid"),
        ("[]", "json: cannot unmarshal array into Go value of type main.BridgeInfo"),
        (LINE.replace("displayName", "name"), 'json: unknown field "name"'),
        (LINE.replace("A72", "A7"), "bridge fingerprint invalid"),
        (
            '{"fingerprint":1}',
            "json: cannot unmarshal number into Go struct field BridgeInfo.fingerprint of type string",
        ),
    ],
    ids=["empty", "null", "array", "unknown field", "bad fingerprint", "wrong type"],
)
def test_a_list_with_an_invalid_line_is_refused(line, problem):
    with pytest.raises(InvalidBridgeList) as refused:
        parse_bridges(LINE + "\n" + line + "\n" + OTHER)

    assert str(refused.value) == f"line 2: {problem}"


def test_every_invalid_line_is_named():
    with pytest.raises(InvalidBridgeList) as refused:
        parse_bridges("\n" + LINE + "\n{}\n")

    assert str(refused.value) == "line 1: unexpected end of JSON input; line 3: bridge fingerprint invalid"


def test_text_after_a_bridge_is_refused_where_upstream_ignores_it():
    with pytest.raises(InvalidBridgeList, match="after top-level value"):
        parse_bridges(LINE + OTHER)


def test_a_lone_surrogate_is_replaced():
    bridges = parse_bridges(LINE.replace("snowflake.", "\ud800"))

    assert bridges == {DEFAULT_FINGERPRINT: "wss://\ufffd\ufffd\ufffdtorproject.net/"}
