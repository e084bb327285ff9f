"""A Kubernetes cluster on loopback: the real API server and controllers, built by Go once for each source.

`python -m signalbox.local.kubernetes` builds it.
"""

import hashlib
import json
import os
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.errors import UnavailableError
from signalbox.local import tools
from signalbox.local.files import CHECKOUT

SOURCE = CHECKOUT / "tests" / "kubernetes" / "server"
PROGRAM = "kubernetes"
# What clients see: without it the API server says v0.0.0-master.
VERSION = "v1.34.4"
SMALL = f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"
# Two compilers at a time: the linker and the largest packages take 1.9 GB, and the machine of reference has two cores.
BUILD = ("build", "-p", "2", "-trimpath", "-buildvcs=false", "-ldflags", SMALL)
LOG_LINES = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster: the API server's URL, the PEM of its CA, and a token with every right."""

    endpoint: str
    ca: str
    token: str = field(repr=False)
    process: int

    @property
    def tls(self) -> ssl.SSLContext:
        """A context that trusts this cluster's CA alone."""
        return ssl.create_default_context(cadata=self.ca)


def home() -> Path:
    """Return the folder of the program that is built from the source as it is now."""
    digest = hashlib.sha256(VERSION.encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    # A folder of its own, with a lock of its own: other tools are installed during the build.
    return tools.TOOLS / "kubernetes" / digest.hexdigest()[:12]


def is_built() -> bool:
    """Return whether the cluster starts without a build."""
    return home().exists()


def program() -> Path:
    """Return the path of the cluster's program, and build it first if the source has changed.

    The build takes 5 minutes on two idle cores and downloads 700 MB of modules; Go's own cache has its results, so that
    a small change takes a minute. Raises `UnavailableError` when it fails.
    """
    tools.install_once(home(), _build)
    return home() / PROGRAM


def _build(folder: Path) -> None:
    folder.mkdir()
    command = [str(tools.go()), *BUILD, "-o", str(folder / PROGRAM), "."]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    done = subprocess.run(
        command, cwd=SOURCE, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UnavailableError(f"Go could not build the Kubernetes cluster:\n{done.stderr.strip()}")


@contextmanager
def running(folder: Path, *, port: int = 0, token_reviews: str | None = None) -> Iterator[Cluster]:
    """Run a cluster that ends with the block, and also when this process is killed; its log is `FOLDER.log`.

    A folder that has been used before continues that cluster, with its keys and objects. With `token_reviews`, the
    URL of a TokenReview webhook, the API server asks there about tokens that it does not know.
    Raises `UnavailableError` with the end of the log if it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [str(program()), f"--folder={folder}", f"--port={port}", f"--token-reviews={token_reviews or ''}"]
    log = log_of(folder)
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output)
    with process:
        try:
            line = process.stdout.readline() if process.stdout else b""
            if not line:
                lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
                raise UnavailableError("\n".join(["the Kubernetes cluster did not start; the end of its log:", *lines]))
            yield Cluster(**json.loads(line), process=process.pid)
        finally:
            process.send_signal(signal.SIGCONT)  # a test may have stopped it
            process.kill()


def log_of(folder: Path) -> Path:
    """Return the path of the log of the cluster in a folder."""
    return folder.with_name(f"{folder.name}.log")


if __name__ == "__main__":
    program()
