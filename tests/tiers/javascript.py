"""The formatter, linter and type checker of the JavaScript: Biome and TypeScript, from npm at exact versions."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from signalbox.local import tools
from signalbox.local.files import CHECKOUT

PACKAGES = CHECKOUT / "package.json"
PROJECTS = ("tsconfig.json", "tsconfig.node.json")  # what runs in browsers, and what runs in Node


def modules() -> Path:
    """Return the `node_modules` with the development packages of `package.json`, installing them on first use.

    The lock next to it has the version and the hash of each. Each lock has a folder of its own, so a change installs
    anew.
    """
    files = [PACKAGES, PACKAGES.with_name("package-lock.json")]
    home = tools.TOOLS / f"javascript-{hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()[:12]}"

    def install(unfinished: Path) -> None:
        unfinished.mkdir()
        for file in files:
            shutil.copy(file, unfinished)
        tools.run_npm("ci", unfinished)

    tools.install_once(home, install)
    return home / "node_modules"


def check_commands() -> tuple[tuple[str, ...], ...]:
    """Return the commands that check format, lint rules and types. They run in the checkout and write nothing."""
    compiler = (*_script("typescript", "tsc"), "--typeRoots", str(modules() / "@types"))
    return (
        (*_script("@biomejs/biome", "biome"), "ci", "--colors=off", "--error-on-warnings"),
        *((*compiler, "--project", project) for project in PROJECTS),
    )


def main() -> int:
    """Format the JavaScript and apply the safe fixes of the linter."""
    command = (*_script("@biomejs/biome", "biome"), "check", "--write")
    return subprocess.run(command, cwd=CHECKOUT, env=tools.environment(os.environ), check=False).returncode


def _script(package: str, name: str) -> tuple[str, str]:
    return str(tools.node()), str(modules() / package / "bin" / name)


if __name__ == "__main__":
    sys.exit(main())
