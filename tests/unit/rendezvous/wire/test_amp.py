"""AMP paths and pages; the expected pages were recorded from upstream."""

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.wire.amp import CACHE_CONTROL, CONTENT_TYPE, armor, decode_path
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage

ORIGINAL_PAGE_SHA256 = "7bef4407758611ca48a9c181f2ac1e577709cad93d3a2680bb3cdfe8099ab47c"
ORIGINAL_LONG_PAGE_SHA256 = "69bad29a8b66c1420a488cce05b9c20d9043d0cb0590a3ce5dca387291dc8ebe"


def opened(page):
    """Return the reply in a page: its pre elements without white space and version, decoded from base64."""
    text = "".join("".join(re.findall("<pre>([^<]*)</pre>", page)).split())
    assert text[0] == "0"
    return base64.b64decode(text[1:]).decode()


@pytest.mark.parametrize(
    ("path", "carried"),
    [
        ("0/", b""),
        ("0foobar/", b""),
        ("0/YWJj", b"abc"),
        ("0///YWJj", b"abc"),
        ("0foobar/YWJj", b"abc"),
        ("0/foobar/YWJj", b"abc"),
        ("0lgWHcwhXFjUm/VGhpcyBpcyBwYXRoLWVuY29kZWQgZGF0YS4", b"This is path-encoded data."),
        ("0/-_8", b"\xfb\xff"),
        ("0/YW\r\nJj", b"abc"),
    ],
)
def test_the_last_segment_of_a_path_is_decoded(path, carried):
    assert decode_path(path) == carried


@pytest.mark.parametrize(
    "path", ["", "0", "0foobar", "/0/YWJj", "1/YWJj", "0/YWJjZ", "0/YWI=", "0/+_8", "0/Y J", "0/é"]
)
def test_another_path_is_refused(path):
    with pytest.raises(InvalidMessage, match=r"^cannot decode URL path$"):
        decode_path(path)


@given(st.binary(), st.text())
def test_encoding_and_decoding_a_path_are_inverse(carried, padding):
    encoded = base64.urlsafe_b64encode(carried).decode().rstrip("=")

    assert decode_path(f"0{padding}/{encoded}") == carried


def test_a_page_equals_upstreams():
    page = armor("This was encoded with AMP armor.")

    assert page.endswith(
        "</head>\n<body>\n<pre>\n0VGhpcyB3YXMgZW5jb2RlZCB3aXRoIEF\nNUCBhcm1vci4=\n</pre>\n</body>\n</html>",
    )
    assert hashlib.sha256(page.encode()).hexdigest() == ORIGINAL_PAGE_SHA256


def test_a_page_of_several_elements_equals_upstreams():
    assert hashlib.sha256(armor("a" * 30_000).encode()).hexdigest() == ORIGINAL_LONG_PAGE_SHA256


@given(st.text(max_size=200) | st.integers(23_700, 24_000).map("a".__mul__))
def test_a_page_contains_its_reply(reply):
    assert opened(armor(reply)) == reply


def test_words_and_elements_respect_the_limits_of_caches_and_clients():
    elements = re.findall("<pre>([^<]*)</pre>", armor("a" * 100_000))

    assert len(elements) > 1
    assert all(len(element) < 32 * 1024 for element in elements)
    assert all(len(word) <= 32 for element in elements for word in element.split())


def test_the_headers_of_an_amp_page():
    assert (CONTENT_TYPE, CACHE_CONTROL) == ("text/html", "max-age=15")
