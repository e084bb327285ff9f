"""The commands announce and download files through the exchange of a whole stage."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signalbox.local.stage_folder import StageFolder
from tests.integration.live.page import WorkingFolder
from tests.patience import wait_for
from tests.unit.clients.sarracenia.web import serving

pytestmark = pytest.mark.emulator

USER, EXCHANGE, QUEUE = "filer", "xs_filer", "q_filer.subscribe.files.host_12345678"
FILES = {
    **{f"data/{place}/{number}.txt": f"{place} {number}".encode() for place in ("CA", "US") for number in range(6)},
    "data/CA/big.bin": bytes(range(256)) * 100,
    "data/CA/ignored.tmp": b"x",
    "data/other/unbound.txt": b"x",
}
BLOCKS = 3  # of 10,000 bytes, of big.bin
DOWNLOADED = {name for name in FILES if not name.endswith(".tmp") and "other" not in name}
MESSAGES = len(DOWNLOADED) - 1 + BLOCKS + 1  # of each `post`; one announces the ignored file


@pytest.fixture
def desk(deployed: dict[str, Any], stage_folder: StageFolder, tmp_path: Path) -> Iterator[WorkingFolder]:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    desk = WorkingFolder.at(tmp_path, stage_folder)
    desk.run("user", "add", USER, "--role", "source")
    desk.run("exchange", "declare", EXCHANGE, "--user", USER)
    try:
        yield desk
    finally:
        desk.run("exchange", "delete", EXCHANGE, "--force", "--yes", "--user", USER)
        desk.run("queue", "delete", QUEUE, "--yes", "--user", USER)
        desk.run("user", "remove", USER, "--yes")


def post(base_url: str, *options: str) -> list[str]:
    where = ["--exchange", EXCHANGE, "--base-url", base_url, "--base-dir", ".", "--user", USER]
    return ["post", "data", "--recursive", *where, *options]


def subscribe(*options: str) -> list[str]:
    bound = ["--exchange", EXCHANGE, "--subtopic", "data.CA.#", "--subtopic", "data.US.#"]
    return ["subscribe", "--queue", QUEUE, *bound, "--user", USER, "--json", *options]


def fetched(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and ".signalbox" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_two_instances_share_a_queue_and_download_each_file_once(desk):
    options = subscribe("--reject", r".*\.tmp$", "--download", "here", "--duplicates", "5m")

    with (
        serving({**FILES}) as web,
        desk.running("one", *options) as one,
        desk.running("two", *options) as two,
    ):
        wait_for(lambda: all("v03.data.US.#" in each.said for each in (one, two)), "bound", seconds=60)
        for times in (1, 2):
            desk.run(*post(web.url, "--block-size", "10000"))
            expected = times * MESSAGES
            wait_for(lambda: len(one.results + two.results) >= expected, "all announced files", seconds=60)  # noqa: B023
        results = one.results + two.results

    assert fetched(desk.folder / "here") == {name: FILES[name] for name in DOWNLOADED}
    assert Counter(result["outcome"] for result in results) == {
        "downloaded": len(DOWNLOADED),
        "block": BLOCKS - 1,
        "rejected": 2,
        "duplicate": len(DOWNLOADED) - 1 + BLOCKS,
    }


def test_announced_changes_are_applied(desk):
    with (
        serving({**FILES}) as web,
        desk.running("fetching", *subscribe("--download", "here")) as fetching,
        desk.running("watching", *post(web.url, "--watch", "--every", "0", "--inline")) as watching,
    ):
        wait_for(lambda: "v03.data.US.#" in fetching.said and "looks for changes" in watching.said, "ready")
        (desk.folder / "data" / "US" / "new").mkdir()
        (desk.folder / "data" / "US" / "new" / "file.txt").write_text("sent along, since it is small")
        (desk.folder / "data" / "US" / "0.txt").unlink()
        wait_for(lambda: len(fetching.results) >= 3, "all changes")

    outcomes = {(one["path"], one["outcome"]) for one in fetching.results}
    assert outcomes == {
        ("data/US/new", "directory"),
        ("data/US/new/file.txt", "downloaded"),
        ("data/US/0.txt", "removed"),
    }
    assert fetched(desk.folder / "here") == {"data/US/new/file.txt": b"sent along, since it is small"}
