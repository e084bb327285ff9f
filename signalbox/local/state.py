"""The folder of a local stage, and its JSON files."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class State:
    """The folder of one local stage: `.signalbox` in the checkout, or a temporary folder in tests."""

    folder: Path = CHECKOUT / ".signalbox"

    @property
    def local(self) -> Path:
        """The public file of the running stage, with its URLs and credentials."""
        return self.folder / "local.json"

    @property
    def emulator(self) -> Path:
        """The folder of the emulator."""
        return self.folder / "emulator"

    @property
    def log(self) -> Path:
        """The emulator's log."""
        return self.emulator / "log"

    @property
    def lock(self) -> Path:
        """The lock file that the running emulator holds; it contains the process id."""
        return self.emulator / "lock"

    @property
    def running(self) -> Path:
        """The file with the emulator's port, instance id and administrator credentials."""
        return self.emulator / "running.json"

    @property
    def routes(self) -> Path:
        """The file with the stable path prefixes of the APIs, which the gateway reads."""
        return self.emulator / "routes.json"

    @property
    def temporary(self) -> Path:
        """The folder for temporary files of the emulator and its functions; part of every worker's command line."""
        return self.emulator / "tmp"

    @property
    def assembly(self) -> Path:
        """The folder of the synthesized app."""
        return self.folder / "cdk.out"


def write_json(path: Path, value: object) -> None:
    """Write a file atomically, readable by its owner only."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp: readable by its owner only
    with os.fdopen(handle, "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
    Path(name).replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None if the file does not exist."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return content
