"""Programs of kombu on a stage: their working folder, a user with a stored key, and workers of Celery."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.shared.user_keys import keep_user_key
from signalbox.clients.deployment import Deployment
from signalbox.flows.exchange import exchange_user
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Role
from tests.patience import wait_for

TASKS = Path(__file__).with_name("tasks.py")


def working_folder(folder: Path, stage_folder: Path) -> Path:
    """Return a folder in which programs find the stage."""
    (folder / ".signalbox").symlink_to(stage_folder)
    return folder


@contextmanager
def user_with_key(deployment: Deployment, stage_folder: Path, name: str) -> Iterator[str]:
    """Create a source whose key is stored in the stage's folder."""
    with exchange_user(deployment, UserName(name), Role.SOURCE) as client:
        signer: Any = client.sqs._request_signer  # only the client has the user's key
        key = ClientCredentials(signer._credentials.access_key, signer._credentials.secret_key)
        keep_user_key(replace(deployment, folder=stage_folder), UserName(name), key)
        yield name


@dataclass(slots=True)
class Workers:
    """Workers of the module `tasks` in a folder. Each task appends its number to a file."""

    folder: Path
    visibility_seconds: int
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a worker in a session of its own, so that a signal reaches its pool, too."""
        name = f"{len(self.running)}-{os.getpid()}@%h"
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "tasks",
            "worker",
            "--loglevel",
            "WARNING",
            "-n",
            name,
            *options,
        ]
        with (self.folder / "workers.log").open("ab") as log:
            self.running.append(
                subprocess.Popen(  # noqa: S603 - our own words
                    command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
                )
            )
        return self.running[-1]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of workers and of programs that send tasks."""
        own = {"DONE": str(self.folder / "done"), "VISIBILITY": str(self.visibility_seconds)}
        return {**os.environ, **own, "PYTHONPATH": str(TASKS.parent)}

    def send(self, count: int, *, seconds: float = 0, countdown: float = 0, first: int = 0) -> None:
        """Send tasks with the numbers from `first` on."""
        words = [sys.executable, str(TASKS), str(first), str(first + count), str(seconds), str(countdown)]
        subprocess.run(words, cwd=self.folder, env=self.environment, check=True)  # noqa: S603 - our own words

    def done(self) -> Counter[int]:
        """Return how many times each number was done."""
        path = self.folder / "done"
        return Counter(map(int, path.read_text().split())) if path.exists() else Counter()

    @property
    def ready(self) -> set[int]:
        """The processes of workers that have begun to receive tasks."""
        path = self.folder / "done-ready"
        return set(map(int, path.read_text().split())) if path.exists() else set()

    def await_done(self, count: int) -> Counter[int]:
        """Wait until `count` different tasks are done; return `done`."""
        wait_for(lambda: len(self.done()) >= count, f"{count} tasks done", progress=self.done)
        return self.done()

    def kill(self) -> None:
        """Kill all workers that run."""
        for worker in self.running:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()

    def log(self) -> str:
        """Return the last output of the workers."""
        path = self.folder / "workers.log"
        return path.read_text(errors="replace")[-20_000:] if path.exists() else ""


@contextmanager
def workers_in(folder: Path, stage_folder: Path, *, visibility_seconds: int) -> Iterator[Workers]:
    """Yield workers of a stage, which are killed when the context ends."""
    workers = Workers(working_folder(folder, stage_folder), visibility_seconds)
    try:
        yield workers
    finally:
        workers.kill()
        print(workers.log())  # which pytest shows of a failed test
