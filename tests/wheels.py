"""The wheel of this checkout, and uv for the environments that it is installed into."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from signalbox.local import setup
from signalbox.local.files import CHECKOUT

EPOCH = "315532800"  # 1980-01-01, the first time that a ZIP file can hold
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


def wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the sources, since a build leaves files next to them; return its path.

    Equal sources make equal bytes.
    """
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "signalbox", folder / "source" / "signalbox", ignore=ignored)
    for name in SOURCES:
        shutil.copy(CHECKOUT / name, folder / "source")
    uv("build", "--wheel", "--no-build-isolation", "--python", sys.executable, "-o", folder, folder / "source")
    (built,) = folder.glob("*.whl")
    return built


def uv(*words: str | Path) -> None:
    """Run uv with pip's package index and certificates."""
    environment = {**setup.index_of_pip(), **os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    environment = setup.installer_environment(environment)
    command = [str(setup.uv()), *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - uv
    assert done.returncode == 0, done.stderr
