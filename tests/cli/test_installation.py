"""The `signalbox` command after `pip install .`, without the rest of the checkout."""

import json
import subprocess
from pathlib import Path

import pytest

from signalbox.local.files import CHECKOUT
from tests import wheels

HELP_OF_EVERY_COMMAND = """
import sys
from typer.main import get_command
from typer.testing import CliRunner
from signalbox.cli.main import app

def leaves(command, words):
    for name, child in getattr(command, "commands", {}).items():
        yield from leaves(child, (*words, name))
    if not getattr(command, "commands", {}):
        yield words

for words in leaves(get_command(app), ()):
    result = CliRunner().invoke(app, [*words, "--help"])
    assert result.exit_code == 0, (words, result.output)
    print(*words)
"""
# The lazy imports of commands: each command imports its adapters and clients when it runs.
EVERY_MODULE = """
import importlib, pkgutil
import signalbox
PARTS = ("signalbox.cli.", "signalbox.clients.", "signalbox.filters.", "signalbox.aws.")
FUNCTIONS_ONLY = {"signalbox.aws.shared.telemetry", "signalbox.aws.rendezvous.countries"}
for module in pkgutil.walk_packages(signalbox.__path__, "signalbox."):
    if module.name.startswith(PARTS) and module.name not in FUNCTIONS_ONLY:
        importlib.import_module(module.name)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """Return the interpreter of a new environment with only the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    wheels.uv("venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    wheels.uv("pip", "install", "--python", python, wheels.wheel(folder / "build"))
    return python


def run(python: Path, *words: str) -> str:
    done = subprocess.run([python, *words], cwd=python.parent, env={}, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_runs(python):
    assert run(python.with_name("signalbox"), "--version").startswith("signalbox ")


def test_the_command_runs_next_to_the_driver_for_sr3(tmp_path):
    """`pip install '.[sr3]'` puts the command on PATH, too."""
    wheels.uv("venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    wheels.uv("pip", "install", "--python", python, f"{wheels.wheel(tmp_path / 'build')}[sr3]")

    assert run(python.with_name("signalbox"), "--version").startswith("signalbox ")


def test_every_command_shows_its_help(python):
    assert len(run(python, "-c", HELP_OF_EVERY_COMMAND).splitlines()) > 30


def test_every_module_that_commands_import_has_its_dependencies(python):
    run(python, "-c", EVERY_MODULE)


@pytest.mark.parametrize("command", [("deploy",), ("local", "up")], ids=" ".join)
def test_a_command_that_needs_the_checkout_fails_with_the_reason(python, command):
    done = subprocess.run(  # noqa: S603 - ours
        [python.with_name("signalbox"), *command],
        cwd=python.parent,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: this command needs a checkout of Signalbox")


def test_plain_cdk_needs_no_environment_of_this_checkout():
    app = json.loads((CHECKOUT / "cdk.json").read_text())["app"]

    assert app == "python3 app.py"
