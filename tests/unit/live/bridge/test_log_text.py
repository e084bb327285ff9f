"""The text of log files as it is published: joined it equals the file, without tokens and lines of reading itself."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.live.bridge.log_text import MAXIMUM_BYTES, Piece, pieces

AT = b"2026-11-26T04:00:00.123456789Z "
TOKEN = b"v2/zzzzz-gj3su-0123456789abcde/2q3w4e5r6t7y8u9i0o1q2w3e4r5t6y7u8i9o0p1a2s3d4f5g6h"
CONTAINER = b"/zzzzz-dz642-0123456789abcde"


def read_in_parts(name: str, content: bytes, ends: list[int]) -> list[Piece]:
    """Publish a file that grows to these sizes, and is over with the last."""
    found: list[Piece] = []
    at = 0
    for number, end in enumerate(ends):
        part = pieces(name, content[at:end], at, is_over=number == len(ends) - 1)
        at = part[-1].end if part else at
        found += part
    return found


def joined(found: list[Piece]) -> str:
    return "".join(one.text for one in found)


def test_whole_lines_are_published_and_the_rest_waits_for_its_end():
    assert pieces("stdout", b"one\ntwo\nthr", 5, is_over=False) == [Piece(5, 13, "one\ntwo\n")]
    assert pieces("stdout", b"thr", 13, is_over=False) == []
    assert pieces("stdout", b"thr", 13, is_over=True) == [Piece(13, 16, "thr")]
    assert pieces("stdout", b"", 13, is_over=True) == []


def test_the_headers_have_the_place_and_what_differs_from_the_file():
    (piece,) = pieces("stdout", b"a\xff\r\nv2/" + b"x" * 27 + b"/y\nb", 10, is_over=True)

    assert piece.text == "a\ufffd\r\nb"
    assert piece.headers() == {"begin": "10", "end": "48", "omitted_lines": "1", "replaced": "1", "unfinished": "1"}
    assert Piece(0, 0, cut_back_from=9).headers() == {"begin": "0", "end": "0", "cut_back_from": "9"}
    assert [one.is_visible for one in (piece, Piece(0, 0), Piece(0, 0, cut_back_from=9))] == [True, False, True]


def test_a_text_that_begins_with_nul_is_not_taken_for_base64():
    assert pieces("stdout", b"\0a\n", 0, is_over=False) == [Piece(0, 3, "\ufffda\n", replaced=1)]


@pytest.mark.parametrize(
    "line",
    [
        b'container token "' + TOKEN + b'"',
        b'container token "' + TOKEN + CONTAINER + b'"',
        b"container token " + TOKEN[3:],
        b"50%\rcontainer token: " + TOKEN[3:],
        b"tunnel connection 12: read tcp 10.0.0.1:80: connection reset by peer",
    ],
    ids=["token", "with its container", "of another form", "behind a return", "tunnel"],
)
@pytest.mark.parametrize("prefix", [AT, b""], ids=["with time", "without time"])
def test_lines_of_crunch_run_with_the_token_and_of_reading_are_left_out(line, prefix):
    found = pieces("crunch-run", b"a\n" + prefix + line + b"\nb\n", 0, is_over=False)

    assert [(one.text, one.omitted_lines) for one in found] == [("a\nb\n", 1)]
    assert found[0].end == len(b"a\n" + prefix + line + b"\nb\n")


@pytest.mark.parametrize("name", ["stdout", "node", "crunch-run"])
@pytest.mark.parametrize(
    "token",
    [
        *(TOKEN, TOKEN + CONTAINER, TOKEN.upper(), TOKEN[:32]),
        *(TOKEN.replace(b"/", one) for one in (b"\\/", b"%2F", b"%25252f", b"\\u002F", b"&#x2f;", b"&#47;")),
    ],
)
def test_no_file_publishes_a_token(name, token):
    found = pieces(name, b"a\nx=" + token + b"&y\nb\n", 0, is_over=False)

    assert [(one.text, one.omitted_lines) for one in found] == [("a\nb\n", 1)]


@given(
    st.integers(MAXIMUM_BYTES - 700, MAXIMUM_BYTES + 700),
    st.sampled_from([b"x", b"x ", "é".encode(), b"v", b'{"a":1,', b"v2" + b"x" * 300]),
    st.sampled_from([b'"', b"", b" "]),
    st.sampled_from([TOKEN, TOKEN.replace(b"8u9i", b"v2V2"), TOKEN.replace(b"-0123", b"-v2v2")]),
    st.lists(st.integers(0, 45_000), max_size=4),
)
@example(before=MAXIMUM_BYTES - 20, filling=b"x", quote=b"", token=TOKEN, ends=[])
@example(before=MAXIMUM_BYTES - 90, filling=b"x", quote=b"", token=TOKEN.replace(b"8u9i", b"v2V2"), ends=[])
@example(before=MAXIMUM_BYTES - 520, filling=b"x", quote=b"", token=TOKEN.replace(b"-0123", b"-v2v2"), ends=[])
def test_no_cut_of_a_long_line_shows_a_part_of_a_token(before, filling, quote, token, ends):
    filled = (filling * before)[:before]
    content = filled + b"=" + quote + token + CONTAINER + quote + b" " + b"y" * MAXIMUM_BYTES
    sizes = [*sorted(min(end, len(content)) for end in ends), len(content)]

    shown = joined(read_in_parts("stdout", content, sizes))

    secret = token.rpartition(b"/")[2].decode()
    assert not any(secret[at : at + 8] in shown for at in range(len(secret) - 8))
    assert shown.endswith("yy")


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=6))
def test_what_is_published_joined_equals_the_file(content, ends):
    sizes = [*sorted(min(end, len(content)) for end in ends), len(content)]

    found = read_in_parts("stdout", content, sizes)

    assert [one.begin for one in found] == [0, *(one.end for one in found)][: len(found)]
    assert (found[-1].end if found else 0) == len(content)
    if not sum(one.replaced for one in found):
        assert joined(found).encode() == content


@pytest.mark.parametrize("character", ["x", "é", "€", "\x01"])
def test_a_long_line_is_cut_between_characters_into_parts_that_are_marked(character):
    content = (character * 300_000 + "\nnext\n").encode()

    found = read_in_parts("stdout", content, [100_000, len(content) - 9, len(content)])

    assert joined(found).encode() == content
    assert max(one.end - one.begin for one in found) <= MAXIMUM_BYTES
    assert {one.is_unfinished for one in found[:-1]} == {True}
    assert not found[-1].is_unfinished


def test_bytes_that_are_no_characters_are_cut_as_well():
    found = pieces("stdout", b"\x80" * 50_000, 0, is_over=True)

    assert found[-1].end == 50_000


def test_the_work_for_a_line_does_not_depend_on_the_lines_before_it():
    def calls(lines: int) -> int:
        made: list[str] = []
        sys.setprofile(lambda _frame, event, _argument: made.append(event))
        try:
            pieces("stdout", b"\n" * lines, 0, is_over=False)
        finally:
            sys.setprofile(None)
        return len(made)

    assert calls(4_000) < 2.1 * calls(2_000)
