"""The example's dispatcher, on a stage: two workers, which are killed, start each container once for each lock."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.local.files import CHECKOUT
from tests.fakes.arvados.cluster import ArvadosCluster
from tests.fakes.arvados.http_server import serving
from tests.fakes.arvados.log_endpoint import LogEndpoint
from tests.integration.live.arvados_lab import PROJECT, TOKEN, Lab
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

DISPATCHER = CHECKOUT / "examples" / "arvados" / "dispatch.py"
KILLS, CONTAINERS = 4, 5  # in each of the runs
# As `systemd-run --unit`, it refuses a name that it has.
PROGRAM = "import sys; open(sys.argv[1], 'x')"


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of a queue, which have a file for each container that they have started or stopped."""

    lab: Lab
    api: str

    @property
    def folder(self) -> Path:
        return self.lab.desk.folder

    @property
    def queue(self) -> str:
        return f"q_{self.lab.user}_dispatch"

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a worker; it ends with SIGKILL."""
        (self.folder / "run.py").write_text(PROGRAM)
        words = ["--exchange", self.lab.place.realm, "--queue", self.queue, "--user", self.lab.user]
        for option, name in (("--start", "on"), ("--stop", "off")):
            words += [option, f"{sys.executable} {self.folder}/run.py {self.folder}/{name}-{{}}"]
        environment = {**os.environ, "ARVADOS_API_URL": self.api, "ARVADOS_API_TOKEN": TOKEN}
        process = subprocess.Popen([sys.executable, DISPATCHER, *words], cwd=self.folder, env=environment)  # noqa: S603
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def files(self, kind: str) -> Sequence[str]:
        return sorted(one.name.removeprefix(f"{kind}-") for one in self.folder.glob(f"{kind}-*"))


def test_each_container_is_started_once_for_each_lock_and_stopped_though_workers_are_killed(
    lab: Lab, deployment: Deployment
):
    random, pause = Random(31), threading.Event().wait  # noqa: S311 - not for secrets
    cluster = ArvadosCluster(lab.database, LogEndpoint({TOKEN: None}))
    cluster.endpoint.records = cluster.answer
    administrator = client_of(deployment)
    requests: dict[str, str] = {}
    with serving(cluster.endpoint) as server, lab.running():
        lab.wait_for_bridges(1)
        workers = Workers(lab, server.url)
        with workers.running():
            wait_for(lambda: len(administrator.bindings(lab.place.realm)) == 2, "the queue's bindings")
            for run in range(KILLS):
                with workers.running():
                    for _ in range(CONTAINERS):
                        request, container = cluster.submit(PROJECT)
                        requests[container] = request
                        pause(random.random() * 0.3)
                    started = min(len(workers.files("on")) + random.randint(1, CONTAINERS), len(requests))
                    wait_for(lambda started=started: len(workers.files("on")) >= started, f"starts in run {run}")
        locks = [f"{one}-1" for one in requests]
        with workers.running(), workers.running():
            wait_for(lambda: len(workers.files("on")) == len(locks), "all starts", progress=lambda: workers.files("on"))
            again, *cancelled = random.sample(sorted(requests), 4)
            cluster.unlock(again)
            wait_for(lambda: f"{again}-2" in workers.files("on"), "a start of the second lock")
            for one in cancelled:
                cluster.cancel(requests[one])
            wait_for(lambda: len(workers.files("off")) == len(cancelled), "all stops")

    assert workers.files("on") == sorted([*locks, f"{again}-2"])
    assert workers.files("off") == sorted(f"{one}-1" for one in cancelled)
    assert {uuid: cluster.objects[uuid]["lock_count"] for uuid in requests} == dict.fromkeys(requests, 1) | {again: 2}
    administrator.delete_queue(workers.queue)
