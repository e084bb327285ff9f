"""The `signalbox` command after the installations of the README: its size, its start files, and the CDK with it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local import tools
from signalbox.local.files import CHECKOUT
from tests.docs.markdown import section

pytestmark = pytest.mark.release

# The variables of this process that a new shell has not.
OURS = ("PYTHON", "VIRTUAL_ENV", "AWS_", "SIGNALBOX_", "COVERAGE", "COV_", "JSII_")
COMMAND_MEGABYTES, DEPLOY_MEGABYTES = 120, 450
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
OTHERS = {
    *("signalbox.aws.shared.telemetry", "signalbox.aws.rendezvous.countries"),  # of functions only
    "signalbox.aws.history.parquet_files",  # needs the extra `history`
}
for module in pkgutil.walk_packages(signalbox.__path__, "signalbox."):
    if module.name.startswith(PARTS) and module.name not in OTHERS:
        importlib.import_module(module.name)
"""


class Installation:
    """A virtual environment of its own with a Node next to it, and the files that were in it before any package."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)  # noqa: S603 - our own interpreter
        self.folder, self.before, self.node = folder, set(folder.rglob("*")), folder.with_name("node")
        add_node(self.node)

    def run(self, *command: str | Path, cwd: Path = CHECKOUT, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the environment's programs and the machine's Node on PATH."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
        path = os.pathsep.join([str(self.folder / "bin"), str(self.node), os.environ["PATH"]])
        words, given = list(map(str, command)), {**kept, **variables, "PATH": path}
        return subprocess.run(words, cwd=cwd, env=given, capture_output=True, text=True, check=False)  # noqa: S603 - ours

    def ok(self, *command: str | Path, **options: object) -> str:
        done = self.run(*command, **options)  # type: ignore[arg-type]  # cwd and variables
        assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def new_files(self) -> list[Path]:
        return [path for path in set(self.folder.rglob("*")) - self.before if path.is_file() and not path.is_symlink()]

    def megabytes(self) -> float:
        """Return the size of what was installed, in MB on disk."""
        return sum(path.stat().st_blocks * 512 for path in self.new_files()) / 1e6


def add_node(folder: Path) -> None:
    """Add the programs `node` and `npx` to a folder: `npx` of the Python package with Node does not run."""
    folder.mkdir()
    (folder / "node").symlink_to(tools.node())
    script = Path(tools.npm()[-1]).resolve().with_name("npx-cli.js")
    (folder / "npx").write_text(f'#!/bin/sh\nexec "{folder / "node"}" "{script}" "$@"\n')
    (folder / "npx").chmod(0o755)


def cdk_block() -> list[str]:
    """Return the commands of the README's block for the CDK."""
    blocks = re.findall(r"```sh\n(.*?)```", section(CHECKOUT / "README.md", "Deploy"), re.DOTALL)
    (block,) = (block for block in blocks if "pip install" in block)
    return block.splitlines()


@pytest.fixture(scope="module")
def command(tmp_path_factory) -> Installation:
    """The command alone, by `pip install .`."""
    installation = Installation(tmp_path_factory.mktemp("command") / "venv")
    installation.ok("pip", "install", ".")
    return installation


@pytest.fixture(scope="module")
def deploying(tmp_path_factory) -> Installation:
    """The environment of the README's block for the CDK."""
    installation = Installation(tmp_path_factory.mktemp("deploying") / "venv")
    (install,) = (line for line in cdk_block() if line.startswith("pip install"))
    installation.ok("sh", "-c", install)
    return installation


def test_the_command_is_small_and_runs_nothing_at_the_start_of_python(command):
    assert command.ok("signalbox", "--version", cwd=command.folder).startswith("signalbox ")
    assert command.megabytes() < COMMAND_MEGABYTES
    assert [path for path in command.new_files() if path.suffix == ".pth"] == []


def test_every_command_shows_its_help(command):
    assert len(command.ok("python", "-c", HELP_OF_EVERY_COMMAND, cwd=command.folder).splitlines()) > 30


def test_every_module_that_commands_import_has_its_dependencies(command):
    command.ok("python", "-c", EVERY_MODULE, cwd=command.folder)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("deploy",), "this command needs a checkout of Signalbox"),
        (("local", "up"), "this command needs a checkout of Signalbox"),
        (("trace", "m-1"), "trace reads Parquet files with pyarrow: install the extra `history`"),
    ],
)
def test_a_command_that_needs_more_fails_with_the_reason(command, words, reason):
    done = command.run("signalbox", *words, cwd=command.folder)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {reason}")


def test_the_readmes_block_for_the_cdk_synthesizes_in_a_clean_environment(deploying, tmp_path):
    (synth,) = (line for line in cdk_block() if line.endswith("synth"))

    deploying.ok("sh", "-c", f"{synth} --quiet --output {tmp_path}")

    assert {path.name for path in tmp_path.glob("*.template.json")} >= {"signalbox.template.json"}
    assert "signalbox" in deploying.ok("signalbox", "--version", cwd=tmp_path)
    assert deploying.megabytes() < DEPLOY_MEGABYTES
