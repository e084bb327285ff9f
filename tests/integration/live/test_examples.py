"""The example clients against the deployed stage, through cut connections."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from signalbox.clients.live.client import LiveClient
from signalbox.live.wamp.messages import Payload
from signalbox.local import tools
from tests.integration.live.stage import new_topic
from tests.integration.live.wamp_clients import EXAMPLES, FOLDER, javascript, python
from tests.integration.shared.tcp_proxy import tcp_proxy
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

OTHERS = (pytest.param(language, marks=pytest.mark.release) for language in ("javascript", "go", "ruby"))
LANGUAGES = ("python", *OTHERS)
BUILD_SECONDS = 300
SOON_SECONDS = 240.0
STREAMS = ("stdout", "stderr")


@dataclass(slots=True)
class Example:
    """A running example and its output lines."""

    process: "subprocess.Popen[str]"
    lines: list[str] = field(default_factory=list)

    def logs(self, stream: str) -> list[str]:
        return [line.removeprefix("log: ") for line in self.lines if line.startswith(f"log: {stream}")]

    def states(self) -> list[str]:
        return [line.removeprefix("record: ") for line in self.lines if line.startswith("record: ")]


@pytest.fixture(scope="module", params=LANGUAGES)
def command(request: pytest.FixtureRequest) -> Sequence[str]:
    """The command that runs the example of a language."""
    return {"python": _python, "javascript": _javascript, "go": _go, "ruby": _ruby}[request.param]()


def _python() -> list[str]:
    return [str(python()), str(EXAMPLES / "python" / "example.py")]


def _javascript() -> list[str]:
    return [str(tools.node()), str(javascript(EXAMPLES / "javascript" / "package.json") / "example.js")]


def _go() -> list[str]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    program = FOLDER / "go-example"
    done = subprocess.run(  # noqa: S603 - Go
        [str(tools.go()), "build", "-o", str(program), "."],
        cwd=EXAMPLES / "go",
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return [str(program)]


def _ruby() -> list[str]:
    ruby = shutil.which("ruby")
    if ruby is None:
        pytest.skip("the example in Ruby is not run: Ruby is not on PATH (Debian: ruby ruby-websocket-driver)")
    probe = [ruby, "-e", 'require "websocket/driver"']
    if subprocess.run(probe, capture_output=True, check=False).returncode:  # noqa: S603 - Ruby itself
        pytest.skip("the example in Ruby is not run: there is no websocket-driver (Debian: ruby-websocket-driver)")
    return [ruby, str(EXAMPLES / "ruby" / "example.rb")]


@contextmanager
def running(command: Sequence[str], container: str, login: Mapping[str, str | None], log: Path) -> Iterator[Example]:
    """Run an example that follows a container."""
    names = {"SIGNALBOX_URL": "url", "SIGNALBOX_REALM": "realm", "SIGNALBOX_USER": "user", "SIGNALBOX_TICKET": "secret"}
    secrets = {variable: str(login[name]) for variable, name in names.items()}
    # Users run the examples without this variable, and pipe their output.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with log.open("w") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own examples
            [*command, container],
            env={**environment, **secrets},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        example = Example(process)

        def listen() -> None:
            example.lines.extend(line.rstrip("\n") for line in process.stdout or ())

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield example
        finally:
            process.kill()
            process.wait()
            thread.join()


@dataclass(slots=True)
class Container:
    """A running container with a log and a record."""

    client: LiveClient
    topic: str
    lines: dict[str, list[str]] = field(default_factory=lambda: {stream: [] for stream in STREAMS})
    states: list[str] = field(default_factory=list)

    def log(self, count: int) -> None:
        for _ in range(count):
            for stream, lines in self.lines.items():
                lines.append(f"{stream} {len(lines)}")
                self.client.publish(f"{self.topic}.log.{stream}", Payload((lines[-1],)))

    def turn(self, state: str) -> None:
        self.states.append(state)
        self.client.publish(f"{self.topic}.record", Payload(({"state": state},)), options={"retain": True})

    def is_seen_by(self, example: Example) -> bool:
        return example.states() == self.states and all(
            example.logs(stream) == lines for stream, lines in self.lines.items()
        )


def test_no_event_is_missing_or_duplicated_through_cut_connections(command, place, tmp_path):
    with tcp_proxy(place.url) as line, place.publisher() as client:
        container = Container(client, new_topic())
        container.log(3)
        container.turn("Queued")
        login = place.login("subscriber", url=line.url(place.url))

        with running(command, container.topic, login, tmp_path / "errors") as example:

            def all_is_seen() -> bool:
                return container.is_seen_by(example)

            def so_far() -> int:
                return len(example.lines)

            wait_for(all_is_seen, "the past", seconds=SOON_SECONDS, progress=so_far)
            for state in ("Running", "Complete"):
                container.log(2)
                line.cut()
                container.log(2)
                container.turn(state)
                wait_for(all_is_seen, f"all until {state}", seconds=SOON_SECONDS, progress=so_far)

        assert container.is_seen_by(example)
        assert line.connections >= 3


def test_a_permanent_error_ends_the_example_with_its_reason(command, place, tmp_path):
    log = tmp_path / "errors"
    login = place.login("subscriber", secret="wrong")

    with running(command, new_topic(), login, log) as example:
        wait_for(
            lambda: "authentication_failed" in log.read_text() + "\n".join(example.lines),
            "the reason",
            seconds=SOON_SECONDS,
            progress=log.read_text,
        )
        wait_for(lambda: example.process.poll() is not None, "the end", seconds=SOON_SECONDS)
