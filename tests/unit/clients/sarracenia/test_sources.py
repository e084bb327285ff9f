"""Sources of files: web servers and the local file system."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from signalbox.clients.sarracenia.sources import SOURCES, ByteRange, NotFetched, UnknownSource, fetch, source_url
from signalbox.sarracenia.formats.announcement import Announcement
from tests.unit.clients.sarracenia.web import serving

FILE = Announcement(datetime(2026, 11, 21, tzinfo=UTC), "https://e/x", "a b/c#d%20?.txt")
ALPHABET = b"abcdefghij"


def content_of(url: str, byte_range: ByteRange | None = None) -> bytes:
    return b"".join(fetch(url, byte_range, SOURCES))


def test_a_path_is_percent_encoded():
    assert source_url(FILE) == "https://e/x/a%20b/c%23d%2520%3F.txt"


def test_a_retrieve_path_replaces_the_path():
    assert source_url(replace(FILE, retrieve_path="get?id=1&x=a b")) == "https://e/x/get?id=1&x=a%20b"


def test_a_web_server_returns_a_file_or_a_range():
    with serving({"a b/f": ALPHABET}) as web:
        assert content_of(f"{web.url}a%20b/f") == ALPHABET
        assert content_of(f"{web.url}a%20b/f", ByteRange(2, 3)) == b"cde"


def test_a_range_is_cut_out_of_the_response_of_a_server_without_ranges():
    with serving({"f": ALPHABET}, supports_ranges=False) as web:
        assert content_of(f"{web.url}f", ByteRange(2, 3)) == b"cde"


def test_redirections_to_other_schemes_fail():
    with serving({"f": ALPHABET, "moved": "/f", "file": "file:///etc/passwd", "ftp": "ftp://127.0.0.1/f"}) as web:
        assert content_of(f"{web.url}moved") == ALPHABET
        for name in ("file", "ftp"):
            with pytest.raises(NotFetched, match=f"cannot fetch '{web.url}{name}'"):
                content_of(web.url + name)


@pytest.mark.parametrize("status", [404, 500, 403])
def test_an_error_status_is_reported(status):
    with serving({"f": status}) as web, pytest.raises(NotFetched, match=f"HTTP Error {status}"):
        content_of(f"{web.url}f")


@pytest.mark.parametrize(
    ("url", "reason"),
    [("http://127.0.0.1:9/f", "refused"), ("http://unknown.invalid/f", "unknown host"), ("http://e:x/f", "port")],
)
def test_an_unreachable_server_is_reported(url, reason):
    with pytest.raises(NotFetched, match=reason):
        content_of(url)


def test_a_local_file_is_read_whole_or_by_range(tmp_path):
    (tmp_path / "a b").write_bytes(ALPHABET)
    url = f"file://{tmp_path}/a%20b"

    assert content_of(url) == ALPHABET
    assert content_of(url, ByteRange(8, 5)) == b"ij"


@pytest.mark.parametrize("path", ["nothing", "%00"])
def test_a_missing_local_file_is_reported(path, tmp_path):
    with pytest.raises(NotFetched, match="cannot read"):
        content_of(f"file:{tmp_path}/{path}")


def test_a_range_with_huge_numbers_fails(tmp_path):
    (tmp_path / "f").write_bytes(ALPHABET)

    for base in (f"file:{tmp_path}/", "http://127.0.0.1:9/"):
        with pytest.raises(NotFetched):
            content_of(f"{base}f", ByteRange(10**5000, 1))


def test_half_of_a_surrogate_pair_is_percent_encoded():
    assert source_url(replace(FILE, path="\ud800", retrieve_path="\ud800")) == "https://e/x/%ED%A0%80"


@pytest.mark.parametrize(
    ("url", "reason"), [("sftp://e/f", "supported are http:, https:, file:"), ("//[e", "is not a URL")]
)
def test_other_schemes_are_refused(url, reason):
    with pytest.raises(UnknownSource, match=reason):
        content_of(url)
