"""Files are announced and fetched by the commands, with the exchange of a whole stage between them."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from signalbox.local.state import State
from tests.integration.parties import wait_for
from tests.unit.sarracenia.web import serving

pytestmark = pytest.mark.emulator

PROGRAM = [sys.executable, "-c", "from signalbox.cli.main import main; main()"]
USER, EXCHANGE, QUEUE = "filer", "xs_filer", "q_filer.subscribe.files.host_12345678"
COMMAND_SECONDS = 120
FILES = {
    **{f"data/{place}/{number}.txt": f"{place} {number}".encode() for place in ("CA", "US") for number in range(6)},
    "data/CA/big.bin": bytes(range(256)) * 100,
    "data/CA/ignored.tmp": b"x",
    "data/other/unbound.txt": b"x",
}
BLOCKS = 3  # of 10,000 bytes, of the big one
WANTED = {name for name in FILES if not name.endswith(".tmp") and "other" not in name}
MESSAGES = len(WANTED) - 1 + BLOCKS + 1  # of each announcement; one is of the file that is ignored


@dataclass(frozen=True, slots=True)
class Desk:
    """A folder in which somebody works with the local stage."""

    folder: Path

    def run(self, *words: str) -> str:
        done = subprocess.run(  # noqa: S603 - our own program
            [*PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def running(self, name: str, *words: str) -> Iterator["Running"]:
        """Run a command in the background, and interrupt it at the end; it must end well."""
        with (self.folder / f"{name}.out").open("w") as out, (self.folder / f"{name}.err").open("w") as err:
            process = subprocess.Popen([*PROGRAM, *words], cwd=self.folder, stdout=out, stderr=err)  # noqa: S603
            try:
                yield Running(self.folder / name)
                process.send_signal(signal.SIGTERM)
                assert process.wait(COMMAND_SECONDS) == 0, (self.folder / f"{name}.err").read_text()
            finally:
                process.kill()
                process.wait()


@dataclass(frozen=True, slots=True)
class Running:
    """What a command has said so far."""

    path: Path

    @property
    def said(self) -> str:
        return self.path.with_suffix(".err").read_text()

    @property
    def results(self) -> list[Mapping[str, Any]]:
        return [json.loads(line) for line in self.path.with_suffix(".out").read_text().splitlines()]


@pytest.fixture
def desk(deployed: dict[str, Any], stage_folder: State, tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / ".signalbox").symlink_to(stage_folder.folder)
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    desk = Desk(tmp_path)
    desk.run("user", "add", USER, "--role", "source")
    desk.run("exchange", "declare", EXCHANGE, "--user", USER)
    try:
        yield desk
    finally:
        desk.run("exchange", "delete", EXCHANGE, "--force", "--user", USER)
        desk.run("queue", "delete", QUEUE, "--user", USER)
        desk.run("user", "remove", USER)


def post(base_url: str, *options: str) -> list[str]:
    where = ["--exchange", EXCHANGE, "--base-url", base_url, "--base-dir", ".", "--user", USER]
    return ["post", "data", "--recursive", *where, *options]


def subscribe(*options: str) -> list[str]:
    bound = ["--exchange", EXCHANGE, "--subtopic", "data.CA.#", "--subtopic", "data.US.#"]
    return ["subscribe", "--queue", QUEUE, *bound, "--user", USER, "--json", *options]


def fetched(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and ".signalbox" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_two_instances_share_a_queue_and_fetch_each_file_once(desk):
    options = subscribe("--reject", r".*\.tmp$", "--download", "here", "--duplicates", "5m")

    with (
        serving({**FILES}) as web,
        desk.running("one", *options) as one,
        desk.running("two", *options) as two,
    ):
        wait_for(lambda: all("v03.data.US.#" in each.said for each in (one, two)), "bound")
        for times in (1, 2):
            desk.run(*post(web.url, "--block-size", "10000"))
            expected = times * MESSAGES
            wait_for(lambda: len(one.results + two.results) >= expected, "all that is announced", seconds=60)  # noqa: B023
        results = one.results + two.results

    assert fetched(desk.folder / "here") == {name: FILES[name] for name in WANTED}
    assert Counter(result["outcome"] for result in results) == {
        "downloaded": len(WANTED),
        "block": BLOCKS - 1,
        "rejected": 2,
        "duplicate": len(WANTED) - 1 + BLOCKS,
    }


def test_changes_are_announced_and_followed(desk):
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
