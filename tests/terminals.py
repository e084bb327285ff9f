"""Programs of users that run in a terminal."""

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

CTRL_C = b"\x03"
INTERRUPTED = 130
# Gives the process the terminal at its standard input, so that Ctrl-C there reaches it and its children.
WITH_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


@dataclass(slots=True)
class Terminal:
    """A process that has a terminal, and what it wrote there."""

    process: "subprocess.Popen[bytes]"
    master: int
    written: bytes = b""

    def after(self, beginning: str) -> list[str]:
        """Return the rest of each complete line that begins so."""
        lines = self.written.decode(errors="replace").split("\r\n")[:-1]
        return [line.removeprefix(beginning) for line in lines if line.startswith(beginning)]

    def listen(self) -> None:
        with suppress(OSError):  # the last process closed the terminal
            while data := os.read(self.master, 4096):
                self.written += data

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)


@contextmanager
def terminal(command: Sequence[str], folder: Path, environment: dict[str, str]) -> Iterator[Terminal]:
    """Run a command with a terminal of its own."""
    master, slave = pty.openpty()
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", WITH_TERMINAL, *command],
        cwd=folder,
        env={**os.environ, "TERM": "xterm-256color", **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    shown = Terminal(process, master)
    thread = threading.Thread(target=shown.listen, daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        process.kill()
        process.wait()
        thread.join()
        os.close(master)
        print(shown.written.decode(errors="replace"))  # shown when a test fails
