"""An unmodified sr3 downloads files that the command announces, and the command those that sr3 announces."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from signalbox.cli.shared.deployment import Deployment
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.page import WorkingFolder
from tests.integration.sarracenia.sr3 import Sr3, environment, new_user
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.minutes(1)]

NAMES = ["bulletins/top", "bulletins/20231114/CA/SACN31_CWAO", "bulletins/a b/c d.txt", "bulletins/café/温度"]
NOT_ROUTED = "forecasts/today"
ARRIVAL_SECONDS = 90  # includes the start of a function's first instance by the emulator


@dataclass(frozen=True, slots=True)
class Both:
    """A user with two clients: the command and sr3."""

    desk: WorkingFolder
    sr3: Sr3
    user: str

    @property
    def out(self) -> Path:
        return self.sr3.home / "weather" / "out"

    @property
    def queue(self) -> str:
        return f"q_{self.user}.subscribe.files"


@pytest.fixture
def both(deployment: Deployment, stage_folder: StageFolder, tmp_path: Path) -> Iterator[Both]:
    environment()
    desk = WorkingFolder.at(tmp_path, stage_folder)
    with new_user(desk, deployment, "files") as broker:
        user = broker.user
        sr3 = Sr3.configured(tmp_path / "sr3", broker, exchange=f"xs_{user}")
        sr3.run("sr3", "--dangerWillRobinson=2", "declare", "post/weather", "subscribe/weather")
        try:
            yield Both(desk, sr3, user)
        finally:
            sr3.run("sr3", "cleanup", "subscribe/weather")
            desk.run("exchange", "delete", f"xs_{user}", "--force", "--yes", "--user", user)


@pytest.mark.parametrize("options", [[], ["--inline"], ["--identity", "md5"]], ids=" ".join)
def test_sr3_downloads_files_announced_by_the_command(options, both):
    both.sr3.write(*NAMES, NOT_ROUTED)
    where = ["--base-url", f"file:{both.out}", "--exchange", f"xs_{both.user}", "--user", both.user]

    with both.sr3.in_foreground():
        both.desk.run("post", str(both.out), "--recursive", *where, *options)
        wait_for(lambda: both.sr3.downloaded().keys() >= set(NAMES), "all files", seconds=ARRIVAL_SECONDS)

    assert both.sr3.downloaded() == {name: name for name in NAMES}


def test_the_command_downloads_files_announced_by_sr3(both):
    bound = ["--exchange", f"xs_{both.user}", "--subtopic", "bulletins.#", "--user", both.user]
    here = both.desk.folder / "here"

    with both.desk.running("fetching", "subscribe", "--queue", both.queue, *bound, "--download", "here") as fetching:
        wait_for(lambda: "bulletins.#" in fetching.said, "bound", seconds=ARRIVAL_SECONDS)
        both.sr3.post(*NAMES, NOT_ROUTED)
        wait_for(lambda: all((here / name).exists() for name in NAMES), "all files", seconds=ARRIVAL_SECONDS)
    both.desk.run("queue", "delete", both.queue, "--yes", "--user", both.user)

    assert {name: (here / name).read_text() for name in NAMES} == {name: name for name in NAMES}
    assert not (here / NOT_ROUTED).exists()
