"""Where files come from."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from signalbox.clients.sarracenia.sources import SOURCES, NotFetched, Part, UnknownSource, fetched, source_url
from signalbox.sarracenia.formats.announcement import Announcement
from tests.unit.clients.sarracenia.web import serving

FILE = Announcement(datetime(2026, 11, 21, tzinfo=UTC), "https://e/x", "a b/c#d%20?.txt")
ALPHABET = b"abcdefghij"


def fetch(url: str, part: Part | None = None) -> bytes:
    return b"".join(fetched(url, part, SOURCES))


def test_a_name_is_escaped_as_urls_need_it():
    assert source_url(FILE) == "https://e/x/a%20b/c%23d%2520%3F.txt"


def test_a_path_for_retrieval_counts_before_the_name():
    assert source_url(replace(FILE, retrieve_path="get?id=1&x=a b")) == "https://e/x/get?id=1&x=a%20b"


def test_a_file_comes_from_a_web_server_whole_or_in_part():
    with serving({"a b/f": ALPHABET}) as web:
        assert fetch(f"{web.url}a%20b/f") == ALPHABET
        assert fetch(f"{web.url}a%20b/f", Part(2, 3)) == b"cde"


def test_a_web_server_that_knows_no_parts_sends_all():
    with serving({"f": ALPHABET}, knows_parts=False) as web:
        assert fetch(f"{web.url}f", Part(2, 3)) == b"cde"


def test_redirections_lead_to_web_servers_only():
    with serving({"f": ALPHABET, "moved": "/f", "file": "file:///etc/passwd", "ftp": "ftp://127.0.0.1/f"}) as web:
        assert fetch(f"{web.url}moved") == ALPHABET
        for name in ("file", "ftp"):
            with pytest.raises(NotFetched, match=f"cannot fetch '{web.url}{name}'"):
                fetch(web.url + name)


@pytest.mark.parametrize("status", [404, 500, 403])
def test_what_a_server_refuses_is_told(status):
    with serving({"f": status}) as web, pytest.raises(NotFetched, match=f"HTTP Error {status}"):
        fetch(f"{web.url}f")


@pytest.mark.parametrize(
    ("url", "reason"),
    [("http://127.0.0.1:9/f", "refused"), ("http://nobody.invalid/f", "unknown host"), ("http://e:x/f", "port")],
)
def test_a_server_that_is_not_there_is_told(url, reason):
    with pytest.raises(NotFetched, match=reason):
        fetch(url)


def test_a_file_comes_from_this_machine_whole_or_in_part(tmp_path):
    (tmp_path / "a b").write_bytes(ALPHABET)
    url = f"file://{tmp_path}/a%20b"

    assert fetch(url) == ALPHABET
    assert fetch(url, Part(8, 5)) == b"ij"


@pytest.mark.parametrize("path", ["nothing", "%00"])
def test_a_file_that_is_not_there_is_told(path, tmp_path):
    with pytest.raises(NotFetched, match="cannot read"):
        fetch(f"file:{tmp_path}/{path}")


def test_a_part_that_begins_beyond_all_numbers_is_not_there(tmp_path):
    (tmp_path / "f").write_bytes(ALPHABET)

    for base in (f"file:{tmp_path}/", "http://127.0.0.1:9/"):
        with pytest.raises(NotFetched):
            fetch(f"{base}f", Part(10**5000, 1))


def test_half_of_a_surrogate_pair_is_escaped_like_anything_else():
    assert source_url(replace(FILE, path="\ud800", retrieve_path="\ud800")) == "https://e/x/%ED%A0%80"


@pytest.mark.parametrize(("url", "reason"), [("sftp://e/f", "known are http:, https:, file:"), ("//[e", "is no URL")])
def test_other_sources_are_not_known(url, reason):
    with pytest.raises(UnknownSource, match=reason):
        fetch(url)
