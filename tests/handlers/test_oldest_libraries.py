"""The packages that functions import from Lambda's runtime: a list, and all functions with their lowest versions."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local import tools
from signalbox.local.files import CHECKOUT
from signalbox.verify.report import lowest_versions
from stacks.settings.config import Config
from stacks.shared import packaging
from tests.wheels import uv

LAYER, RUNTIME = CHECKOUT / "lambdas" / "requirements.in", CHECKOUT / "lambdas" / "runtime.in"
MODULES = {"jaq-rs": "jaq", "pyjwt": "jwt"}
# pyjwt imports cryptography; pyarrow is the command's, in a module of the adapters that no function imports.
INDIRECT, OF_THE_COMMAND = {"cryptography"}, {"pyarrow", "kombu", "amqp"}
# Everything that runs in a function: handlers with moto, and the modules with an HTTP client of their own.
TESTS = ("tests/handlers", "tests/adapters/live")
MARKERS = "not (emulator or release or java or kubernetes)"


def required(path: Path) -> dict[str, str]:
    """Return the bounds of each module that a file of requirements names."""
    lines = re.findall(r"^([\w-]+)([^;#\n]*)", path.read_text(), re.MULTILINE)
    return {MODULES.get(name, name.replace("-", "_")): bounds.strip() for name, bounds in lines}


def imported() -> set[str]:
    """Return the packages that the functions' code imports, without those of Python and our own."""
    files = [path for name, path in packaging._code_files(Config()) if name.endswith(".py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"signalbox", "lambdas"}


def test_every_import_is_of_the_layer_or_has_a_lowest_version_in_the_runtime():
    only_types = {name for name in imported() if name.startswith(("mypy_boto3_", "_typeshed"))}

    listed = required(LAYER).keys() | required(RUNTIME).keys()
    assert imported() - only_types - OF_THE_COMMAND == listed - INDIRECT
    assert all(re.fullmatch(r">=[\d.]+", bounds) for bounds in required(RUNTIME).values())


@pytest.mark.release
def test_all_functions_run_with_the_oldest_libraries_of_the_runtime():
    exact = [f"{name}=={version}" for name, version in lowest_versions(RUNTIME.read_text()).items()]
    home = tools.TOOLS / f"runtime-{'-'.join(exact)}"
    tools.install_once(home, lambda unfinished: uv("pip", "install", "--target", unfinished, *exact))

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", MARKERS, *TESTS]
    environment = {**os.environ, "PYTHONPATH": str(home)}
    done = subprocess.run(  # noqa: S603 - our own tests
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout[-5000:]
