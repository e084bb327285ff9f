"""Arvados' Python SDK in a virtual environment of its own."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from signalbox.local import setup
from signalbox.local.files import CHECKOUT
from tests import wheels
from tests.integration.live.tls_endpoint import LOOPBACK, TlsEndpoint

SDK = "arvados-python-client==3.2.1"
FOLDER = CHECKOUT / ".signalbox" / "arvados"
PROGRAM = Path(__file__).with_name("arvados_client.py")
EVENT_SECONDS = 240.0


def environment() -> Path:
    """Return the SDK's virtual environment, created once."""
    venv = FOLDER / "venv"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = setup.stamp(venv, [Path(__file__)])
        if not setup.is_current(venv, stamp):
            shutil.rmtree(venv, ignore_errors=True)
            wheels.uv("venv", venv)
            wheels.uv("pip", "install", "--python", venv / "bin" / "python", SDK)
            (venv / "stamp").write_text(stamp)
    return venv


@dataclass
class SdkClient:
    """The SDK's program, with the events that it prints."""

    process: subprocess.Popen[str]
    events: "Queue[Any]" = field(default_factory=Queue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.put(json.loads(line))

    def ask(self, **command: object) -> None:
        """Send a command to the program."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def next(self, number: int) -> list[Any]:
        """Return the next events."""
        found: list[Any] = []
        with contextlib.suppress(Empty):
            while len(found) < number:
                found.append(self.events.get(timeout=EVENT_SECONDS))
        assert len(found) == number, found
        return found


@contextmanager
def sdk_client(endpoint: TlsEndpoint, path: str, token: str, filters: object) -> Iterator[SdkClient]:
    """Run the SDK's program, which trusts the endpoint's certificate."""
    url = f"wss://{LOOPBACK}:{endpoint.port}{path}"
    command = [str(environment() / "bin" / "python"), str(PROGRAM), url, token, json.dumps(filters)]
    variables = {"PATH": os.environ["PATH"], "HOME": str(FOLDER), "SSL_CERT_FILE": str(endpoint.certificate)}
    with subprocess.Popen(  # noqa: S603 - ours
        command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield SdkClient(process)
        finally:
            process.kill()
