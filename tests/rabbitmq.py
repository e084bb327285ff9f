"""A RabbitMQ server of Debian's package `rabbitmq-server` on loopback, for comparisons."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import wait_for

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
STARTED = "Starting broker... completed"


def is_installed() -> bool:
    """Return whether the machine has the package."""
    return SERVER.exists() and shutil.which("epmd") is not None


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run a server with its files in a folder; yield its broker URL."""
    port, names = free_port(), free_port()
    environment = {
        **os.environ,
        "HOME": str(folder),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_NODENAME": f"signalbox{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        # The port mapper of Erlang survives its nodes: this one has a port of its own, and is stopped below.
        "ERL_EPMD_PORT": str(names),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    output = folder / "output"
    with output.open("wb") as log:
        server = subprocess.Popen([SERVER], env=environment, stdout=log, stderr=log, start_new_session=True)  # noqa: S603
    try:
        wait_for(lambda: STARTED in output.read_text(), "a started RabbitMQ")
        yield f"pyamqp://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, 9)
        server.wait()
        # It refuses to end while it counts the node as alive.
        end = ["epmd", "-port", str(names), "-kill"]
        wait_for(lambda: not subprocess.run(end, capture_output=True, check=False).returncode, "the mapper's end")  # noqa: S603
