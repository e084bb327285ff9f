"""A working folder in which the command uses the local stage."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signalbox.local.stage_folder import StageFolder

PROGRAM = [sys.executable, "-c", "from signalbox.cli.main import main; main()"]
COMMAND_SECONDS = 240


@dataclass(frozen=True, slots=True)
class WorkingFolder:
    """A folder whose commands use the local stage."""

    folder: Path

    @classmethod
    def at(cls, folder: Path, stage: StageFolder) -> "WorkingFolder":
        """Return the working folder at a path; it shares the state of the stage."""
        (folder / ".signalbox").symlink_to(stage.path)
        return cls(folder)

    def run(self, *words: str) -> str:
        done = subprocess.run(  # noqa: S603 - our own program
            [*PROGRAM, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def running(self, name: str, *words: str, ends: bool = False) -> Iterator["Running"]:
        """Run a command in the background, and interrupt it at the end unless it `ends` itself; it must exit with 0."""
        with (self.folder / f"{name}.out").open("w") as out, (self.folder / f"{name}.err").open("w") as err:
            process = subprocess.Popen([*PROGRAM, *words], cwd=self.folder, stdout=out, stderr=err)  # noqa: S603
            try:
                yield Running(self.folder / name)
                if not ends:
                    process.send_signal(signal.SIGTERM)
                assert process.wait(COMMAND_SECONDS) == 0, (self.folder / f"{name}.err").read_text()
            finally:
                process.kill()
                process.wait()
                print(f"{name} said:\n{Running(self.folder / name).said}")  # shown when a test fails


@dataclass(frozen=True, slots=True)
class Running:
    """The output of a running command."""

    path: Path

    @property
    def said(self) -> str:
        return self.path.with_suffix(".err").read_text()

    @property
    def results(self) -> list[Mapping[str, Any]]:
        return [json.loads(line) for line in self.path.with_suffix(".out").read_text().splitlines()]
