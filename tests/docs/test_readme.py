"""Tests that run the examples of the pages."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.docs.markdown import PAGES, ROOT, Block, blocks, entries, section
from tests.integration.rendezvous.peers import Parties

BLOCKS = [block for page in PAGES for block in blocks(page)]
OFFLINE = [block for block in BLOCKS if block.language == "python" and block.kind == "offline"]
ON_A_STAGE = [block for block in blocks(ROOT / "README.md") if block.kind == "stage" or block.language == "console"]


def test_every_python_example_runs_somewhere():
    assert {block.kind for block in BLOCKS if block.language == "python"} <= {"offline", "stage", "construct"}


@pytest.mark.parametrize("block", OFFLINE, ids=lambda block: block.place)
def test_an_example_without_a_stage_runs(block, tmp_path):
    _run_python(block, tmp_path)


@pytest.mark.emulator
def test_the_examples_on_a_stage_run(deployed, deployment, tmp_path):
    folder = _like_a_checkout(tmp_path, deployed)
    _wake(deployed["rendezvous_url"])
    # An offer that another test on this stage has left would get the proxy of the example.
    Parties.of_local(deployment, deployed).wait_until_nothing_waits()

    for block in ON_A_STAGE:
        if block.language == "python":
            _run_python(block, folder)
        else:
            _run_console(block, folder)


@pytest.mark.emulator
def test_every_key_of_local_json_has_its_entry(deployed):
    documented = entries(section(ROOT / "docs" / "operations.md", "local.json"))

    assert set(documented) == set(deployed)


def _like_a_checkout(folder: Path, local: dict[str, Any]) -> Path:
    """Write `local.json` and the `signalbox` command into a folder, as in a checkout."""
    (folder / ".signalbox").mkdir()
    (folder / ".signalbox" / "local.json").write_text(json.dumps(local))
    command = folder / "bin" / "signalbox"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from signalbox.cli.main import main; main()" "$@"\n')
    command.chmod(0o755)
    return folder


def _wake(rendezvous_url: str) -> None:
    # `make up` has run its demo before a reader tries an example, so the functions have started before.
    with suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{rendezvous_url}proxy", data=b"not a poll", timeout=60)


def _run_python(block: Block, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block.code],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{block.place}: {done.stderr}"


def _run_console(block: Block, folder: Path) -> None:
    """Run each command and compare its output; `…` matches any text, a number matches any number."""
    for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=_environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{block.place}: {done.stdout}"
        assert re.fullmatch(_pattern(expected), done.stdout, re.DOTALL), f"{block.place}: {done.stdout}"


def _pattern(expected: str) -> str:
    return re.sub(r"\d+", r"\\d+", re.escape(expected)).replace("…", ".*")


def _environment(folder: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return ours | {"PATH": f"{folder / 'bin'}{os.pathsep}{ours['PATH']}", "PYTHONPATH": str(ROOT)}
