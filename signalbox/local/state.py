"""Where one local stage keeps what belongs to it, and how its files are written."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class State:
    """The folder of one local stage: `.signalbox` in the checkout, or a temporary one in tests."""

    folder: Path = CHECKOUT / ".signalbox"

    @property
    def local(self) -> Path:
        """What the outside world may read: URLs and credentials of the running stage."""
        return self.folder / "local.json"

    @property
    def emulator(self) -> Path:
        """Return the folder of the emulator itself."""
        return self.folder / "emulator"

    @property
    def log(self) -> Path:
        """Everything the emulator says."""
        return self.emulator / "log"

    @property
    def lock(self) -> Path:
        """Held by the living emulator, with its process id inside."""
        return self.emulator / "lock"

    @property
    def running(self) -> Path:
        """Describe the running emulator: port, instance and the administrator's credentials."""
        return self.emulator / "running.json"

    @property
    def routes(self) -> Path:
        """Stable prefixes of the APIs, read by the gateway."""
        return self.emulator / "routes.json"

    @property
    def temporary(self) -> Path:
        """Where the emulator and its functions put their files; part of every worker's command line."""
        return self.emulator / "tmp"

    @property
    def assembly(self) -> Path:
        """Where the app is synthesized to."""
        return self.folder / "cdk.out"


def write_json(path: Path, value: object) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp: readable by its owner only
    with os.fdopen(handle, "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
    Path(name).replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return what a file of ours holds, or None if it is not there."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return content
