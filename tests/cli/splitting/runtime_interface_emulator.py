"""AWS's Lambda runtime interface emulator, as PyPI's aws-sam-cli has it, with the runtime client awslambdaric."""

import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from signalbox.local import tools
from tests.patience import wait_for

SAM = "aws-sam-cli==1.170.0"
RUNTIME_CLIENT = ("awslambdaric==4.2.2", "simplejson==3.20.2", "snapshot-restore-py==1.0.0")
HOME = tools.TOOLS / f"aws-lambda-rie-{SAM.partition('==')[2]}-{sys.version_info.major}.{sys.version_info.minor}"
MACHINES = {"aarch64": "arm64", "arm64": "arm64"}


@contextmanager
def emulated(handler: str, folder: Path, *, timeout_seconds: int) -> Iterator[str]:
    """Run a handler of a folder behind an emulator; yield the URL of its invocations."""
    tools.install_once(HOME, _install)
    port = unused_port()
    process = subprocess.Popen(  # noqa: S603 - AWS's own program
        [
            *(HOME / "aws-lambda-rie", "--runtime-interface-emulator-address", f"127.0.0.1:{port}"),
            *(sys.executable, "-m", "awslambdaric", handler),
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HOME / "packages"), str(folder)]),
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_seconds),
            "AWS_LAMBDA_FUNCTION_NAME": "worker",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: _accepts(port), "the emulator accepts connections")
        yield f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
    finally:
        process.terminate()
        process.wait()


def _install(folder: Path) -> None:
    folder.mkdir()
    machine = MACHINES.get(platform.machine(), "x86_64")
    with tempfile.TemporaryDirectory() as whole:
        tools.install_wheel(Path(whole), SAM)
        shutil.copy(Path(whole, "samcli", "local", "rapid", f"aws-lambda-rie-{machine}"), folder / "aws-lambda-rie")
    (folder / "aws-lambda-rie").chmod(0o755)
    for package in RUNTIME_CLIENT:
        tools.install_wheel(folder / "packages", package)


def unused_port() -> int:
    """Return a port of this machine that nothing uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _accepts(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
