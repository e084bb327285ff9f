"""Servers in Java on loopback: one of a kind for a test process, and ended with it."""

import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from signalbox.local import maven
from signalbox.local.tools import java_home
from tests.fakes.http_endpoint import free_port

PINS = Path(__file__).parent
# The C1 compiler and the serial collector start faster and leave the other core to the tests.
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")
STARTS = 3  # another process may take a free port before the server does
PATIENCE_SECONDS = 120
# A shell that becomes Java, with a child that ends Java when the pipe to this process closes: also if it is killed.
WHILE_OWNED = 'exec 3<&0; (cat <&3 >/dev/null; kill $$) & exec "$@" </dev/null'
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Server:
    """A program in Java that listens on a port: its archives, and the words of its command after the class path."""

    name: str
    size: str
    main: str

    def class_path(self) -> str:
        """Return the class path of its archives, which are downloaded on first use."""
        return class_path(self.name, size=self.size)

    @contextmanager
    def running(self, options: Sequence[str], arguments: Sequence[str], *, log: Path) -> Iterator[str]:
        """Run it and yield its URL; `{port}` in its words is the port that it listens on."""
        for _ in range(STARTS):
            port = str(free_port())
            words = [*options, "-cp", self.class_path(), self.main, *arguments]
            command = [*java(), *(word.replace("{port}", port) for word in words)]
            with _process(command, log) as process:
                if _listens(process, int(port)):
                    yield f"http://{HOST}:{port}"
                    return
        raise AssertionError(f"{self.name} did not start:\n{log.read_text()}")


def java() -> list[str]:
    """Return the command of Java with the options that suit short runs."""
    return [str(java_home() / "bin" / "java"), *QUICK_START]


def class_path(name: str, *, size: str) -> str:
    """Return the class path of the archives in the list of this name."""
    pinned = maven.archives((PINS / f"{name}.txt").read_text().splitlines())
    return f"{maven.install(name, pinned, on_line=print, size=size)}/*"


@contextmanager
def _process(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        owned = ["/bin/sh", "-c", WHILE_OWNED, "sh", *command]
        process = subprocess.Popen(owned, stdin=subprocess.PIPE, stdout=output, stderr=output)  # noqa: S603 - ours
        try:
            yield process
        finally:
            process.communicate()  # closes the pipe


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    """Return whether a server listens on the port; False if its process ended instead."""
    deadline = monotonic() + PATIENCE_SECONDS
    while monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return True
        sleep(0.02)
    return False
