"""The example of Celery, run as its page shows it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local.files import CHECKOUT
from signalbox.local.stage_folder import StageFolder
from tests.integration.kombu.programs import working_folder

pytestmark = [pytest.mark.emulator, pytest.mark.release]

EXAMPLE = CHECKOUT / "examples" / "celery"
PATIENCE_SECONDS = 600  # far longer than a machine takes


def test_the_shop_runs_as_its_page_shows(deployed: object, stage_folder: StageFolder, tmp_path: Path) -> None:
    folder = working_folder(tmp_path, stage_folder.path)
    shutil.copytree(EXAMPLE, folder / "celery")
    commands = re.findall(r"^ +\$ (.+)$", (EXAMPLE / "README.md").read_text(), re.MULTILINE)
    programs = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    try:
        for command in commands:
            subprocess.run(  # noqa: S602 - the page's own commands
                command, shell=True, cwd=folder / "celery", env=programs, check=True, timeout=PATIENCE_SECONDS
            )
        customs = (folder / "celery" / "customs.log").read_text()
    finally:
        subprocess.run(commands[-1], shell=True, cwd=folder / "celery", env=programs, check=False)  # noqa: S602

    assert len(commands) == 7
    assert "book" not in customs
