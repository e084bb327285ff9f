"""Hostile announcements: each ends in an outcome, and nothing outside of the download directory changes."""

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from signalbox.clients.sarracenia.downloader import Downloader
from signalbox.clients.sarracenia.sources import from_file
from signalbox.clients.sarracenia.subscriber import AnnouncedMessage, Subscriber
from signalbox.sarracenia.subscription.limits import Limits

MOMENT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
NAMES = st.sampled_from(["a", "b", "..", ".", "", "link", ".signalbox", "\ud800", "\0", "x" * 300, "é"])
PATHS = st.lists(NAMES, max_size=5).map("/".join)
NUMBERS = st.sampled_from([0, 1, 5, 6, 10**15, 10**30, 10**4000, -1, "5"])
DIGEST = {"method": "md5", "value": "XUFAKrxLKna5cZ2REBfFkg=="}  # of hello
METHODS = [None, DIGEST, {"method": "cod", "value": "x"}]
BLOCK = st.fixed_dictionaries({"size": NUMBERS, "identity": st.just(DIGEST["value"])})
DOCUMENTS = st.fixed_dictionaries(
    {
        "pubTime": st.just("20261121T195959"),
        "baseUrl": st.sampled_from(["file:SOURCE/", "file:SOURCE", "file:", "//[", "sftp://e/", "\ud800", "file:\0"]),
        "relPath": PATHS,
    },
    optional={
        "retrievePath": PATHS,
        "size": NUMBERS,
        "mode": st.sampled_from(["644", "0", "7777", "rw", "-1", "9" * 5000]),
        "mtime": st.sampled_from(["00010101T000000", "99991231T235959.999999", "20261121T195959"]),
        "identity": st.sampled_from(METHODS),
        "content": st.fixed_dictionaries({"encoding": st.just("utf-8"), "value": st.sampled_from(["hello", "", "\0"])}),
        "fileOp": st.dictionaries(st.sampled_from(["link", "remove", "directory", "rename"]), PATHS, max_size=3),
        "blocks": st.fixed_dictionaries(
            {"method": st.just("inplace"), "size": NUMBERS, "number": NUMBERS},
            optional={"count": NUMBERS, "manifest": st.dictionaries(st.sampled_from("012"), BLOCK, max_size=3)},
        ),
    },
)


class EmptyStore:
    """A duplicate cache and retry store that stores nothing."""

    def last_seen(self, _key):
        return None

    def record(self, _key, *, now):
        assert now == MOMENT

    def add(self, failed):
        raise AssertionError(failed)


@given(st.lists(DOCUMENTS, min_size=1, max_size=4))
def test_every_message_ends_in_an_outcome_inside_of_the_directory(documents):
    with tempfile.TemporaryDirectory() as folder:
        source, outside = Path(folder, "source"), Path(folder, "outside")
        for directory in (source, outside):
            directory.mkdir()
        (source / "a").write_text("hello")
        (outside / "kept").write_text("kept")
        downloader = Downloader(outside / "target", {"file": from_file})
        store = EmptyStore()
        limits = Limits(duplicates_ttl=timedelta(seconds=10), attempts=1)
        subscriber = Subscriber(lambda announced, _: downloader.apply(announced), store, store, limits=limits)

        for document in documents:
            body = json.dumps(document).replace("SOURCE", str(source))
            subscriber.handle(AnnouncedMessage(body, {}, "xs_alice", "v03"), now=MOMENT)

        assert names(folder) == {"outside", "source"}
        assert names(outside) <= {"kept", "target"}
        assert names(source) == {"a"}
        assert (outside / "kept").read_text() == "kept"


def names(directory: str | Path) -> set[str]:
    return {path.name for path in Path(directory).iterdir()}
