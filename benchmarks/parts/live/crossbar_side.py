"""Crossbar, the reference router of WAMP, installed from PyPI in its own environment."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.parts.live.rules import RouterProcess
from benchmarks.shared.stage import FOLDER
from signalbox.errors import UnavailableError
from signalbox.local import setup
from signalbox.local.files import CHECKOUT

VERSION = "26.10.1"
REALM = "benchmark"
HOME = FOLDER / "crossbar"
VENV = HOME / "venv"
INSTALL_SECONDS, START_SECONDS, STOP_SECONDS = 600, 180, 30
ALL = {"call": True, "register": True, "publish": True, "subscribe": True}


class NoCrossbar(UnavailableError):
    """Raised when crossbar cannot be installed or started on this machine."""


def install() -> None:
    """Create crossbar's environment unless it exists."""
    stamp = f"crossbar {VERSION}"
    if (VENV / "stamp").is_file() and (VENV / "stamp").read_text() == stamp:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    uv = str(CHECKOUT / ".venv" / "bin" / "uv")
    _run([uv, "venv", str(VENV)])
    _run([uv, "pip", "install", "--python", str(VENV / "bin" / "python"), f"crossbar=={VERSION}"])
    (VENV / "stamp").write_text(stamp)


@contextmanager
def running(realms: Sequence[str] = (REALM,)) -> Iterator[RouterProcess]:
    """Run crossbar on loopback with realms that allow anonymous sessions everything; they have one URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    (HOME / "node").mkdir(parents=True, exist_ok=True)
    (HOME / "node" / "config.json").write_text(json.dumps(_configuration(port, realms)))
    command = [str(VENV / "bin" / "crossbar"), "start", "--cbdir", str(HOME / "node"), "--loglevel", "warn"]
    with (HOME / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=HOME)
        try:
            _wait_for(process, port)
            yield RouterProcess([f"ws://127.0.0.1:{port}/"], process.pid)
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def _configuration(port: int, realms: Sequence[str]) -> dict[str, object]:
    role = {"name": "anonymous", "permissions": [{"uri": "", "match": "prefix", "allow": ALL}]}
    transport = {
        "type": "websocket",
        "endpoint": {"type": "tcp", "port": port, "interface": "127.0.0.1"},
        "auth": {"anonymous": {"type": "static", "role": "anonymous"}},
    }
    served = [{"name": realm, "roles": [role]} for realm in realms]
    router = {"type": "router", "realms": served, "transports": [transport]}
    return {"version": 2, "workers": [router]}


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoCrossbar(f"crossbar did not start; see {HOME / 'log'}") from error
            time.sleep(0.2)
        else:
            return


def _run(command: Sequence[str]) -> None:
    environment = setup.installer_environment({**setup.index_of_pip(), **os.environ})
    try:
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise NoCrossbar(f"{command[0]} took longer than {INSTALL_SECONDS} s") from error
    except subprocess.CalledProcessError as error:
        raise NoCrossbar(f"{' '.join(command[:3])} failed: {error.stderr.strip()[-300:]}") from error
