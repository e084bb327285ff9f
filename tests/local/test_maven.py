"""Archives of Maven Central are downloaded once, complete, and only if they are the pinned ones."""

import hashlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from signalbox.errors import UnavailableError
from signalbox.local import maven, tools
from tests.fakes.http_endpoint import serving

CONTENT = b"classes"
PINNED = maven.Archive("org.example", "parts", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def central(monkeypatch, tmp_path: Path) -> Iterator[Path]:
    """A repository on loopback with one archive; its folder."""
    folder = tmp_path / "central"
    published = folder / "org" / "example" / "parts" / "1.0" / "parts-1.0.jar"
    published.parent.mkdir(parents=True)
    published.write_bytes(CONTENT)
    monkeypatch.setattr(tools, "TOOLS", tmp_path / "tools")
    with serving(partial(SimpleHTTPRequestHandler, directory=str(folder))) as url:
        monkeypatch.setattr(maven, "CENTRAL", url)
        yield published


def install(*wanted: maven.Archive) -> Path:
    return maven.install("parts", wanted, on_line=lambda _: None, size="7 bytes")


def test_an_archive_is_downloaded_once(central: Path) -> None:
    home = install(PINNED)
    central.unlink()

    assert install(PINNED) == home
    assert [file.read_bytes() for file in home.iterdir()] == [CONTENT]


def test_an_archive_that_is_not_the_pinned_one_is_refused_and_nothing_is_left(central: Path) -> None:
    central.write_bytes(b"something else")

    with pytest.raises(UnavailableError, match=r"parts-1\.0\.jar has the SHA-256 \w{64}, not the pinned"):
        install(PINNED)
    assert [file.name for file in tools.TOOLS.iterdir()] == ["parts.lock"]


def test_a_missing_archive_is_named(central: Path) -> None:
    missing = maven.Archive("org.example", "parts", "2.0", "0" * 64)

    with pytest.raises(UnavailableError, match=r"could not download .*parts-2\.0\.jar: HTTP Error 404"):
        install(PINNED, missing)


def test_a_list_has_an_archive_a_line() -> None:
    listed = ["# a comment", "org.example:parts:1.0 abc", ""]

    assert maven.archives(listed) == (maven.Archive("org.example", "parts", "1.0", "abc"),)
