"""The wheels of this checkout, and uv for the environments that they are installed into."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from signalbox.local import setup
from signalbox.local.files import CHECKOUT

EPOCH = "315532800"  # 1980-01-01, the first time that a ZIP file can hold


def wheel(folder: Path, source: Path = CHECKOUT) -> Path:
    """Build the wheel of a distribution and return its path. Equal sources make equal bytes."""
    shutil.rmtree(folder, ignore_errors=True)
    uv("build", "--wheel", "--no-build-isolation", "--python", sys.executable, "-o", folder, source)
    (built,) = folder.glob("*.whl")
    return built


def uv(*words: str | Path) -> None:
    """Run uv with pip's package index and certificates."""
    environment = {**setup.index_of_pip(), **os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    environment = setup.installer_environment(environment)
    command = [str(setup.uv()), *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - uv
    assert done.returncode == 0, done.stderr
