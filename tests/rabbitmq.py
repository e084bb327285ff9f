"""A RabbitMQ server of Debian's package `rabbitmq-server` on loopback, for comparisons."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.http_endpoint import free_port
from tests.patience import wait_for

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
STARTED = "Starting broker... completed"


def is_installed() -> bool:
    """Return whether the machine has the package."""
    return SERVER.exists() and shutil.which("epmd") is not None


@dataclass(slots=True)
class RabbitMq:
    """A server with its files in a folder."""

    folder: Path
    port: int = field(default_factory=free_port)
    names: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The broker URL."""
        return f"pyamqp://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, with what it stored before, and wait for it."""
        output = self.folder / "output"
        with output.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own words
                [SERVER], env=self._environment(), stdout=log, stderr=log, start_new_session=True
            )
        wait_for(lambda: STARTED in output.read_text(), "a started RabbitMQ")

    def kill(self) -> None:
        """End the server with SIGKILL."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "HOME": str(self.folder),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_NODENAME": f"signalbox{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            # The port mapper of Erlang survives its nodes: this one has a port of its own, and is stopped below.
            "ERL_EPMD_PORT": str(self.names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }


@contextmanager
def running(folder: Path) -> Iterator[RabbitMq]:
    """Run a server with its files in a folder."""
    server = RabbitMq(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        # It refuses to end while it counts the node as alive.
        end = ["epmd", "-port", str(server.names), "-kill"]
        wait_for(lambda: not subprocess.run(end, capture_output=True, check=False).returncode, "the mapper's end")  # noqa: S603
