"""Crossbar, the reference router of WAMP, installed from PyPI in its own environment."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from benchmarks.shared.stage import FOLDER
from signalbox.errors import UnavailableError
from signalbox.local import setup
from signalbox.local.files import CHECKOUT

VERSION = "26.10.1"
REALM = "benchmark"
HOME = FOLDER / "crossbar"
VENV = HOME / "venv"
INSTALL_SECONDS, START_SECONDS = 600, 180
KEPT_EVENTS = 1_000
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


@dataclass(slots=True)
class Crossbar:
    """A node of crossbar on loopback, whose realms have one URL."""

    port: int
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"ws://127.0.0.1:{self.port}/"

    @property
    def pid(self) -> int:
        """The node's process, which has children."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the node and wait until it accepts connections. Raises `NoCrossbar`."""
        command = [str(VENV / "bin" / "crossbar"), "start", "--cbdir", str(HOME / "node"), "--loglevel", "warn"]
        with (HOME / "log").open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=HOME, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoCrossbar(f"crossbar did not start; see {HOME / 'log'}")
            time.sleep(0.2)

    def kill(self) -> None:
        """End all processes of the node with SIGKILL."""
        if self._process:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def _accepts(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
            return True
        return False


@contextmanager
def running(realms: Sequence[str] = (REALM,), *, history: Sequence[str] = ()) -> Iterator[Crossbar]:
    """Run crossbar with realms that allow anonymous sessions everything, and keep the events of `history`'s topics."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        node = Crossbar(probe.getsockname()[1])
    (HOME / "node").mkdir(parents=True, exist_ok=True)
    (HOME / "node" / "config.json").write_text(json.dumps(_configuration(node.port, realms, history)))
    try:
        node.start()
        yield node
    finally:
        node.kill()


def _configuration(port: int, realms: Sequence[str], history: Sequence[str]) -> dict[str, object]:
    role = {"name": "anonymous", "permissions": [{"uri": "", "match": "prefix", "allow": ALL}]}
    transport = {
        "type": "websocket",
        "endpoint": {"type": "tcp", "port": port, "interface": "127.0.0.1"},
        "auth": {"anonymous": {"type": "static", "role": "anonymous"}},
    }
    topics = [{"uri": topic, "match": "exact", "limit": KEPT_EVENTS} for topic in history]
    store = {"store": {"type": "memory", "event-history": topics}} if history else {}
    served = [{"name": realm, "roles": [role], **store} for realm in realms]
    router = {"type": "router", "realms": served, "transports": [transport]}
    return {"version": 2, "workers": [router]}


def _run(command: Sequence[str]) -> None:
    environment = setup.installer_environment({**setup.index_of_pip(), **os.environ})
    try:
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise NoCrossbar(f"{command[0]} took longer than {INSTALL_SECONDS} s") from error
    except subprocess.CalledProcessError as error:
        raise NoCrossbar(f"{' '.join(command[:3])} failed: {error.stderr.strip()[-300:]}") from error
