"""The page «Live for a lab»: its commands run from top to bottom, on a stage, with a database and a provider."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from signalbox.local.stage_folder import StageFolder
from tests.docs.markdown import ROOT, Block, blocks
from tests.identity.provider import IdentityProvider
from tests.identity_provider import approve_device
from tests.integration.live.page import WorkingFolder
from tests.integration.live.stage import TrialRealm
from tests.patience import wait_for
from tests.postgres import ClusterDatabase

PAGE = ROOT / "docs" / "lab.md"
STAGE, BACKGROUND, SIGN_IN = "stage", "background", "sign-in"
PROJECT = "zzzzz-j7d0g-0123456789abcde"
COLLECTION = "zzzzz-4zz18-0123456789abcde"
COMMAND_SECONDS = 240
DEVICE_URL = re.compile(r"or open (\S+)")


@dataclass(slots=True)
class Reader:
    """Someone who follows the page in a folder; the environment goes from block to block."""

    folder: Path
    examples: Mapping[str, str]
    environment: dict[str, str]

    def run(self, block: Block) -> str:
        """Run a block, which must succeed, and return its output."""
        script = f"{self.replaced(block.code)}\nenv -0 > .environment"
        done = subprocess.run(  # noqa: S603 - the page's commands
            ["/bin/bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        assert done.returncode == 0, f"{block.place}: {done.stdout}{done.stderr}"
        lines = (self.folder / ".environment").read_text().split("\0")
        self.environment = dict(line.split("=", 1) for line in lines if line)
        return done.stdout

    @contextmanager
    def in_background(self, block: Block) -> Iterator[None]:
        """Run a block until the end of the context, where it must end with 0 on SIGTERM."""
        with self._started(block) as process:
            yield
            process.send_signal(signal.SIGTERM)
            assert process.wait(COMMAND_SECONDS) == 0, self.errors(block)

    def sign_in(self, block: Block) -> str:
        """Run a block in which ann signs in with the printed address, and return its output."""
        with self._started(block) as process:
            wait_for(
                lambda: DEVICE_URL.search(self.errors(block)) or process.poll() is not None,
                "the address",
                seconds=COMMAND_SECONDS,
            )
            address = DEVICE_URL.search(self.errors(block))
            assert address is not None, self.errors(block)
            approve_device(address[1], "ann")
            assert process.wait(COMMAND_SECONDS) == 0, self.errors(block)
        return (self.folder / f"{block.kind}.out").read_text()

    def errors(self, block: Block) -> str:
        """Return the standard error of a block that was started."""
        return (self.folder / f"{block.kind}.err").read_text()

    @contextmanager
    def _started(self, block: Block) -> Iterator["subprocess.Popen[Any]"]:
        code = f"exec {self.replaced(block.code)}"
        folder = self.folder
        with (folder / f"{block.kind}.out").open("w") as out, (folder / f"{block.kind}.err").open("w") as err:
            process = subprocess.Popen(  # noqa: S603 - the page's commands
                ["/bin/bash", "-c", code], cwd=self.folder, env=self.environment, stdout=out, stderr=err
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def replaced(self, code: str) -> str:
        for example, value in self.examples.items():
            code = code.replace(example, value)
        return code


@pytest.fixture
def reader(
    tmp_path: Path,
    stage_folder: StageFolder,
    place: TrialRealm,
    cluster_database: ClusterDatabase,
    identity_provider: IdentityProvider,
) -> Iterator[Reader]:
    desk = WorkingFolder.at(tmp_path, stage_folder)
    command = desk.folder / "bin" / "signalbox"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from signalbox.cli.main import main; main()" "$@"\n')
    command.chmod(0o755)
    examples = {
        "https://login.example.org": identity_provider.url,
        "urn:signalbox:live": identity_provider.audience,
        "postgresql://signalbox@db.example.org/arvados_production": cluster_database.dsn,
    }
    path = f"{command.parent}:{os.environ['PATH']}"
    yield Reader(desk.folder, examples, {**os.environ, "PATH": path, "XDG_STATE_HOME": str(desk.folder / "state")})
    desk.run("exchange", "delete", "xs_cluster.fifo", "--force", "--yes")
    for user in ("cluster", "ben"):
        desk.run("user", "remove", user, "--yes")


def test_every_block_of_the_page_is_run():
    found = [(block.language, block.kind) for block in blocks(PAGE)]

    assert set(found) == {("sh", STAGE), ("sh", BACKGROUND), ("sh", SIGN_IN)}


@pytest.mark.emulator
@pytest.mark.release
def test_the_page_works_from_top_to_bottom(reader: Reader, cluster_database: ClusterDatabase):
    cluster_database.insert(object_owner_uuid=PROJECT, object_uuid=COLLECTION, event_type="create")
    printed = ""
    with ExitStack() as running:
        for block in blocks(PAGE):
            if block.kind == BACKGROUND:
                running.enter_context(reader.in_background(block))
            elif block.kind == SIGN_IN:
                printed = reader.sign_in(block)
            else:
                reader.run(block)

    assert f"record.collection.{PROJECT}.{COLLECTION}.create" in printed
