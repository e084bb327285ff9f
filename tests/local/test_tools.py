"""npm packages are installed once, complete or not at all."""

import json
import sys

import pytest

from signalbox.errors import UnavailableError
from signalbox.local import tools

# Writes what it was asked to install into the folder after --prefix.
NPM = """
import pathlib, sys
words = sys.argv[1:]
modules = pathlib.Path(words[words.index("--prefix") + 1]) / "node_modules"
modules.mkdir(parents=True)
(modules / "installed").write_text(" ".join(word for word in words if "@" in word))
sys.exit("broken" in sys.argv[-1])
"""


@pytest.fixture
def packages(monkeypatch, tmp_path):
    program, file = tmp_path / "npm.py", tmp_path / "package.json"
    program.write_text(NPM)
    monkeypatch.setattr(tools, "TOOLS", tmp_path / "tools")
    monkeypatch.setattr(tools, "JAVASCRIPT_PACKAGES", file)
    monkeypatch.setattr(tools, "npm", lambda: [sys.executable, str(program)])

    def written(**versions):
        file.write_text(json.dumps({"devDependencies": versions}))

    return written


def test_each_set_of_versions_is_installed_once(packages):
    packages(compiler="1.0.0", linter="2.0.0")
    first = tools.javascript_modules()

    assert (first / "installed").read_text() == "compiler@1.0.0 linter@2.0.0"
    assert tools.javascript_modules() == first

    packages(compiler="1.0.1", linter="2.0.0")
    assert tools.javascript_modules() != first


def test_a_failed_installation_leaves_nothing(packages):
    packages(broken="1.0.0")

    with pytest.raises(UnavailableError, match=r"npm could not install broken@1\.0\.0"):
        tools.javascript_modules()

    assert list(tools.TOOLS.iterdir()) == []
