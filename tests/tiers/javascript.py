"""The formatter, linter and type checker of the JavaScript: Biome and TypeScript, from npm at exact versions."""

import os
import subprocess
import sys

from signalbox.local import tools
from signalbox.local.files import CHECKOUT

PROJECTS = ("tsconfig.json", "tsconfig.node.json")  # what runs in browsers, and what runs in Node


def check_commands() -> tuple[tuple[str, ...], ...]:
    """Return the commands that check format, lint rules and types. They run in the checkout and write nothing."""
    modules = tools.javascript_modules()
    compiler = (*_script("typescript", "tsc"), "--typeRoots", str(modules / "@types"))
    return (
        (*_script("@biomejs/biome", "biome"), "ci", "--colors=off", "--error-on-warnings"),
        *((*compiler, "--project", project) for project in PROJECTS),
    )


def main() -> int:
    """Format the JavaScript and apply the safe fixes of the linter."""
    command = (*_script("@biomejs/biome", "biome"), "check", "--write")
    return subprocess.run(command, cwd=CHECKOUT, env=tools.environment(os.environ), check=False).returncode


def _script(package: str, name: str) -> tuple[str, str]:
    return str(tools.node()), str(tools.javascript_modules() / package / "bin" / name)


if __name__ == "__main__":
    sys.exit(main())
