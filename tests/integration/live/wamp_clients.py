"""Unmodified WAMP clients, each in a program that executes requests and prints its results as JSON."""

import fcntl
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from signalbox.local import setup, tools
from signalbox.local.files import CHECKOUT
from tests.patience import Deadline

FOLDER = CHECKOUT / ".signalbox" / "clients"
PROGRAMS = Path(__file__).parent / "wamp"
EXAMPLES = CHECKOUT / "examples" / "clients"
INSTALL_SECONDS = 600
SOON_SECONDS = 240.0  # the emulator starts a function's first instance meanwhile
TRIES = 3
SHOWN = 200  # documents of a client's output in the message of a failed test
IN_JAVASCRIPT = tuple(pytest.param(kind, marks=pytest.mark.release) for kind in ("autobahn-js", "wampy"))
KINDS = ("autobahn-python", *IN_JAVASCRIPT)


class Refused(AssertionError):
    """Raised when a client's request is answered by an error."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(f"{error}: {text}")
        self.error, self.text = error, text


def python() -> Path:
    """Return the Python interpreter of an environment with Autobahn, which is created once."""
    requirements = EXAMPLES / "python" / "requirements.txt"
    venv = FOLDER / "python"
    with _only_one("python"):
        stamp = setup.stamp(venv, [requirements])
        if not setup.is_current(venv, stamp):
            shutil.rmtree(venv, ignore_errors=True)
            environment = setup.installer_environment({**setup.index_of_pip(), **os.environ})
            uv = str(setup.uv())
            _run([uv, "venv", str(venv)], environment)
            _run([uv, "pip", "install", "--python", str(venv / "bin" / "python"), "-r", str(requirements)], environment)
            (venv / "stamp").write_text(stamp)
    return venv / "bin" / "python"


def javascript(package: Path) -> Path:
    """Return a folder with a package's current files and its dependencies, which are installed once."""
    folder = FOLDER / f"javascript-{package.parent.name}"
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one(folder.name):
        for file in [one for ending in ("js", "mjs", "html") for one in package.parent.glob(f"*.{ending}")]:
            shutil.copy(file, folder)
        if not (folder / "node_modules").exists() or (folder / "package.json").read_text() != package.read_text():
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
            shutil.copy(package, folder)
            quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel", "error")
            _run([*tools.npm(), "install", "--prefix", str(folder), *quiet], tools.environment(os.environ))
    return folder


@contextmanager
def _only_one(name: str) -> Iterator[None]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(  # noqa: S603 - package managers
        command, env=environment, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


def command_of(kind: str) -> list[str]:
    """Return the command line of a client."""
    if kind in ("autobahn-python", "autobahn-runner"):
        return [str(python()), str(PROGRAMS / f"{kind.replace('-', '_')}.py")]
    script = {"autobahn-js": "autobahn_js.mjs", "wampy": "wampy.mjs"}[kind]
    return [str(tools.node()), str(javascript(PROGRAMS / "package.json") / script)]


@dataclass(slots=True)
class Client:
    """A running client; `output` has the documents that it printed, in order."""

    process: "subprocess.Popen[str]"
    output: list[dict[str, Any]] = field(default_factory=list)
    _asked: int = 0
    _change: threading.Condition = field(default_factory=threading.Condition)

    def ask(self, do: str, **given: object) -> Any:
        """Execute a request and return its result. Raises `Refused`."""
        self._asked += 1
        number = self._asked
        self._write({"id": number, "do": do, **given})
        reply = self.wait_for(lambda: next((one for one in self.output if one.get("id") == number), None), do)
        if "error" in reply:
            raise Refused(reply["error"], reply["text"])
        return reply["result"]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a subscription that were received so far."""
        with self._change:
            return [one for one in self.output if one.get("event") == name]

    def values(self, name: str) -> list[Any]:
        """Return the first argument of each of them."""
        return [one["args"][0] for one in self.events(name)]

    def wait_for(self, look: Callable[[], Any], what: str, *, seconds: float = SOON_SECONDS) -> Any:
        """Return the first true result of `look`."""
        deadline = Deadline(seconds)
        with self._change:
            while not (found := look()):
                assert not deadline.is_over(), f"within {seconds} s, not {what}; output: {self.output[-SHOWN:]}"
                self._change.wait(1.0)
            return found

    def wait_for_values(self, name: str, values: Sequence[object]) -> None:
        """Wait until exactly these values were received."""
        self.wait_for(lambda: len(self.values(name)) >= len(values), f"{len(values)} events of {name!r}")
        assert self.values(name) == list(values)

    def joins(self) -> int:
        """Count the sessions so far."""
        return sum("joined" in one for one in self.output)

    def wait_for_join(self, number: int = 1) -> dict[str, Any]:
        """Return the document of the n-th session."""

        def found() -> Any:
            joined = [one for one in self.output if "joined" in one]
            return joined[number - 1] if len(joined) >= number else None

        document: dict[str, Any] = self.wait_for(found, f"session {number}")
        return document

    def has_joined(self) -> bool:
        """Wait until the client has joined or its join has timed out; return whether it has joined."""

        def outcome() -> list[bool]:
            late = any("wamp.error.timeout" in json.dumps(one) for one in self.output)
            return [True] if self.joins() else [False] if late else []

        return bool(self.wait_for(outcome, "joined")[0])

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                with self._change:
                    self.output.append(json.loads(line))
                    self._change.notify_all()

    def _write(self, said: Mapping[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(said) + "\n")
        self.process.stdin.flush()


@contextmanager
def started(command: Sequence[str], login: Mapping[str, str | None]) -> Iterator[Client]:
    """Run a client that joins, and reconnects, with a login."""
    process = subprocess.Popen(  # noqa: S603 - our own programs
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    client = Client(process)
    thread = threading.Thread(target=client.listen, daemon=True)
    thread.start()
    try:
        client._write(login)
        yield client
    finally:
        process.kill()
        process.wait()
        thread.join()


def joined(stack: ExitStack, command: Sequence[str], login: Mapping[str, str | None]) -> Client:
    """Run a client and return it when it has joined.

    A session must join within 10 s, which may fail on a busy machine. autobahn-js does not retry a session that is
    aborted before it has joined.
    """
    for _ in range(TRIES):
        client = stack.enter_context(started(command, login))
        if client.has_joined():
            return client
    raise AssertionError(f"not joined in {TRIES} tries")
