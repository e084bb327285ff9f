"""A realm of a cluster's own on a stage, and bridges that publish to it."""

import json
import os
import secrets
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from signalbox.clients.live.cursor import PatternCursor
from signalbox.errors import SignalboxError
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.page import PROGRAM, WorkingFolder
from tests.integration.live.stage import TrialRealm
from tests.patience import wait_for
from tests.postgres import ClusterDatabase

PROJECT, COLLECTION = "zzzzz-j7d0g-aaaaaaaaaaaaaaa", "zzzzz-4zz18-aaaaaaaaaaaaaaa"
STATE = f"record.collection.{PROJECT}.{COLLECTION}"
TOKEN = "v2/zzzzz-gj3su-000000000000001/reader"
START_SECONDS = 240.0


@dataclass(slots=True)
class Lab:
    """A realm of a cluster's own, the commands in a folder, and what a subscriber of all topics has received."""

    desk: WorkingFolder
    place: TrialRealm
    user: str
    ticket: str
    database: ClusterDatabase
    received: list[tuple[str, Any]] = field(default_factory=list)
    api: str = ""
    program: Sequence[str] = field(default_factory=lambda: PROGRAM)

    @property
    def ids(self) -> list[object]:
        return [body["id"] for topic, body in list(self.received) if topic == f"{STATE}.update"]

    def text(self, topic: str) -> str:
        return "".join(str(body) for one, body in list(self.received) if one == topic)

    def wait_for_bridges(self, count: int) -> None:
        """Wait until bridges have begun to publish a number of times in all."""
        errors = self.desk.folder / "bridge.err"
        wait_for(lambda: errors.read_text().count("publishing to") >= count, "the bridge", seconds=START_SECONDS)

    def start(self) -> "subprocess.Popen[bytes]":
        """Start a bridge."""
        words = ["arvados", "bridge", "--exchange", self.place.realm, "--user", self.user, "--json"]
        words += ["--from-log-id", "0"]
        words += ["--arvados-api", self.api, "--logs", "all"] if self.api else []
        environment = {**os.environ, "SIGNALBOX_DATABASE": self.database.dsn, "SIGNALBOX_TICKET": self.ticket}
        environment["ARVADOS_API_TOKEN"] = TOKEN
        with (self.desk.folder / "bridge.out").open("a") as out, (self.desk.folder / "bridge.err").open("a") as err:
            return subprocess.Popen(  # noqa: S603 - our own program
                [*self.program, *words], cwd=self.desk.folder, env=environment, stdout=out, stderr=err
            )

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a bridge until the end of the context."""
        process = self.start()
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def following(self) -> Iterator[None]:
        """Receive the publications of rows until the end of the context."""
        over = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            followed = pool.submit(self._follow, over)
            try:
                yield
            finally:
                over.set()
                followed.result()

    def _follow(self, over: threading.Event) -> None:
        with self.place.client("admin") as client:
            for prefix in ("container.", "record."):
                client.follow(PatternCursor(TopicPattern.parse(prefix, MatchPolicy.PREFIX)))
            while not over.is_set():
                with suppress(SignalboxError):
                    event = client.receive(0.5)
                    if event is not None:
                        self.received.append((event.topic, event.payload.arguments[0]))


@pytest.fixture
def lab(
    place: TrialRealm, stage_folder: StageFolder, tmp_path: Path, cluster_database: ClusterDatabase
) -> Iterator[Lab]:
    desk, user = WorkingFolder.at(tmp_path, stage_folder), f"cluster-{secrets.token_hex(3)}"
    realm = f"xs_{user}.fifo"
    desk.run("user", "add", user, "--role", "source")
    desk.run("exchange", "declare", realm, "--live", "--order-by", "exchange", "--keep-for", "24h", "--user", user)
    ticket = json.loads(desk.run("user", "secret", user, "--json"))["secret"]
    yield Lab(desk, replace(place, realm=realm), user, ticket, cluster_database)
    print((tmp_path / "bridge.err").read_text())  # shown when a test fails
    desk.run("exchange", "delete", realm, "--force", "--yes")
    desk.run("user", "remove", user, "--yes")
