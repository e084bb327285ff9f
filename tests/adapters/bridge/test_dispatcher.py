"""The example's dispatcher: each container is started once for each lock, and cancelled ones are stopped."""

import importlib.util
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from signalbox.local.files import CHECKOUT
from tests.fakes.arvados.cluster import ArvadosCluster, new_uuid
from tests.fakes.arvados.http_server import serving
from tests.fakes.arvados.log_endpoint import State
from tests.postgres import ClusterDatabase

CONTAINER = "zzzzz-dz642-0123456789abcde"
DISPATCHER, OWNER, TOKEN = CHECKOUT / "examples" / "arvados" / "dispatch.py", new_uuid("group"), "v2/x/secret"


@dataclass(slots=True)
class Stage:
    """A cluster, the dispatcher, and a folder with a file for each container that was started or stopped."""

    cluster: ArvadosCluster
    module: ModuleType
    folder: Path

    def handle(self, container: str) -> None:
        """Handle a message. As `systemd-run --unit`, the command refuses a name that it has; it counts the calls."""
        program = "import os, sys; open(sys.argv[1], 'x')"
        start, stop = (f"{sys.executable} {self.folder / 'run.py'} {self.folder}/{one}-{{}}" for one in ("on", "off"))
        (self.folder / "run.py").write_text(program)
        self.module.handle(container, start, stop)

    def files(self, kind: str) -> list[str]:
        return sorted(one.name.removeprefix(f"{kind}-") for one in self.folder.glob(f"{kind}-*"))


@pytest.fixture
def stage(cluster_database: ClusterDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    spec = importlib.util.spec_from_file_location("dispatch", DISPATCHER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cluster = ArvadosCluster(cluster_database)
    cluster.endpoint.tokens[TOKEN] = None
    cluster.endpoint.records = cluster.answer
    with serving(cluster.endpoint) as server:
        monkeypatch.setenv("ARVADOS_API_URL", server.url)
        monkeypatch.setenv("ARVADOS_API_TOKEN", TOKEN)
        yield Stage(cluster, module, tmp_path)


def test_two_workers_start_each_container_once_though_messages_come_again(stage):
    """A message comes again after its worker was killed, before or after it had locked or started the container."""
    containers = [stage.cluster.submit(OWNER)[1] for _ in range(5)]
    stage.cluster.lock(containers[0])  # by a worker that was killed then
    with ThreadPoolExecutor(2) as workers:
        list(workers.map(stage.handle, [*containers, *containers]))

    assert stage.files("on") == sorted(f"{one}-1" for one in containers)
    assert {stage.cluster.objects[one]["lock_count"] for one in containers} == {1}


def test_a_container_that_returns_to_the_queue_is_started_again(stage):
    _, container = stage.cluster.submit(OWNER)
    stage.handle(container)
    stage.cluster.unlock(container)
    stage.handle(container)

    assert stage.files("on") == [f"{container}-1", f"{container}-2"]


def test_a_cancelled_container_is_stopped_and_a_queued_one_is_never_started(stage):
    request, container = stage.cluster.submit(OWNER)
    stage.handle(container)
    stage.cluster.run(container)
    stage.cluster.cancel(request)
    other_request, other = stage.cluster.submit(OWNER)
    stage.cluster.cancel(other_request)
    for one in (container, container, other):
        stage.handle(one)

    assert stage.cluster.objects[container]["state"] == State.CANCELLED.value
    assert (stage.files("on"), stage.files("off")) == ([f"{container}-1"], [f"{container}-1"])
    assert stage.cluster.objects[other]["state"] == "Queued"


@pytest.mark.parametrize("hostile", ["x", "[]", "null", '{"uuid": "../users/x?"}', '{"uuid": "x; reboot"}', "[" * 9999])
def test_an_event_of_another_publisher_names_no_command(stage, hostile):
    found = stage.module.CONTAINER.search(json.dumps({"uuid": CONTAINER, "state": hostile}))

    assert stage.module.CONTAINER.search(hostile) is None
    assert found[0] == CONTAINER


def test_the_example_has_at_most_sixty_lines():
    assert len(DISPATCHER.read_text().splitlines()) <= 60
