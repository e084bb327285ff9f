"""Each component of sr3, by the configurations of the examples: a file passes through all of them."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.page import WorkingFolder
from tests.integration.sarracenia.sr3 import VENV, Sr3, environment, new_user
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

COMPONENTS = tuple(f"{name}/weather" for name in ("watch", "poll", "subscribe", "sarra", "shovel", "sender"))
WITH_QUEUES = COMPONENTS[2:]
WATCHED, POLLED = "bulletins/today/SACN31_CWAO", "bulletins/SACN32_CWAO"
WATCHING = "now active"  # what watch says when it would see a new file
ARRIVAL_SECONDS = 240
USER, PASSWORD = "weather", "rain"


@dataclass(frozen=True, slots=True)
class FtpServer:
    """An FTP server of a folder on this machine."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"ftp://{USER}@127.0.0.1:{self.port}/"

    @property
    def credentials(self) -> str:
        return f"ftp://{USER}:{PASSWORD}@127.0.0.1:{self.port}/\n"

    def files(self) -> dict[str, str]:
        """Return the contents of the files that were sent here, by name."""
        folder = self.folder / "received"
        return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FtpServer]:
    environment()
    folder = tmp_path / "server"
    (folder / "received").mkdir(parents=True)
    with _free_port() as port:
        server = FtpServer(folder, port)
    command = [VENV / "bin" / "python", "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", str(server.port), "-w"]
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(  # noqa: S603 - a server for tests
            [*command, "-u", USER, "-P", PASSWORD, "-d", str(folder)], stdout=log, stderr=log
        )
        try:
            wait_for(lambda: _accepts(server.port), "the FTP server")
            yield server
        finally:
            process.kill()
            process.wait()


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield free.getsockname()[1]


def _accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def sr3(deployment: Deployment, stage_folder: StageFolder, tmp_path: Path, server: FtpServer) -> Iterator[Sr3]:
    """An sr3 of a new user with the configurations of the examples; its server is `server`."""
    changes = {"ftp://weather@ftp.example.com/": server.url, "sleep 60": "sleep 2"}
    with new_user(WorkingFolder.at(tmp_path, stage_folder), deployment, "pump") as broker:
        sr3 = Sr3.configured(tmp_path / "sr3", broker, exchange=f"xs_{broker.user}", **changes)
        with (sr3.home / ".config" / "sr3" / "credentials.conf").open("a") as credentials:
            credentials.write(server.credentials)
        sr3.run("sr3", f"--dangerWillRobinson={len(COMPONENTS)}", "declare", *COMPONENTS)
        # sr3 may miss a file that is written into a new directory before it watches that, too.
        (sr3.home / "weather" / "out" / WATCHED).parent.mkdir(parents=True)
        yield sr3
        sr3.run("sr3", f"--dangerWillRobinson={len(WITH_QUEUES)}", "cleanup", *WITH_QUEUES)


def test_files_pass_through_watch_poll_subscribe_sarra_shovel_and_sender(sr3: Sr3, server: FtpServer):
    """A watched directory and a polled server are mirrored, and the mirror is sent to a server."""
    with sr3.in_background(*COMPONENTS):
        wait_for(lambda: _running(sr3) == set(COMPONENTS), "all at work", seconds=ARRIVAL_SECONDS, every=1)
        wait_for(lambda: WATCHING in sr3.log("watch"), "the directory watched", seconds=ARRIVAL_SECONDS)
        sr3.write(WATCHED)
        (server.folder / POLLED).parent.mkdir()
        (server.folder / POLLED).write_text(POLLED)
        for found in (sr3.downloaded, server.files):
            wait_for(lambda found=found: found().keys() >= {WATCHED, POLLED}, "both files", seconds=ARRIVAL_SECONDS)
        during = _running(sr3)
    after = _running(sr3)

    assert sr3.downloaded() == server.files() == {name: name for name in (WATCHED, POLLED)}
    assert during == set(COMPONENTS)
    assert after == set()


def _running(sr3: Sr3) -> set[str]:
    """Return the configurations of which `sr3 status` shows all instances running."""
    return {name for name, (_state, processes, *_) in sr3.status().items() if processes in ("1/1", "2/2")}
