"""What watches and steers Celery's workers from other processes: inspect, control, events and Flower."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from signalbox.clients.deployment import LocalDeployment
from signalbox.local.stage_folder import StageFolder
from tests.integration.kombu.programs import Workers, workers_in
from tests.patience import SOON_SECONDS, wait_for
from tests.rabbitmq import free_port

pytestmark = [pytest.mark.emulator, pytest.mark.release]

REPLY_SECONDS = round(SOON_SECONDS)  # a command ends with the reply of its one worker
LONGER_SECONDS = 3600  # than the test
NODE = "watched@here"


@pytest.fixture(scope="module")
def workers(
    deployment: LocalDeployment, stage_folder: StageFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    """Return one worker that receives tasks; none stays for the workers of other tests."""
    folder = tmp_path_factory.mktemp("monitors")
    with workers_in(folder, stage_folder.path, visibility_seconds=30) as workers:
        worker = workers.start("-c", "2", "-E", "-n", NODE)
        wait_for(lambda: worker.pid in workers.ready, "a worker that receives tasks")
        yield workers
    sqs = deployment.session().client("sqs")
    sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName="q__celery")["QueueUrl"])


def celery(workers: Workers, *words: str) -> list[str]:
    return [sys.executable, "-m", "celery", "-A", "tasks", *words]


def asked(workers: Workers, *words: str) -> Any:
    """Return the reply of the worker to a command of `celery`."""
    command = celery(workers, *words, "--timeout", str(REPLY_SECONDS), "--destination", NODE, "--json")
    done = subprocess.run(  # noqa: S603 - our own words
        command, cwd=workers.folder, env=workers.environment, capture_output=True, text=True, check=True
    )
    replies = json.loads(done.stdout)
    return (replies[0] if isinstance(replies, list) else replies)[NODE]


def test_workers_answer_questions_and_obey_commands(workers: Workers) -> None:
    workers.send(1, seconds=LONGER_SECONDS)
    wait_for(lambda: asked(workers, "inspect", "active"), "an active task")

    assert asked(workers, "inspect", "ping") == {"ok": "pong"}
    assert asked(workers, "inspect", "registered") == ["tasks.note"]
    assert asked(workers, "control", "pool_grow", "1") == {"ok": "pool will grow"}
    wait_for(lambda: len(asked(workers, "inspect", "stats")["pool"]["processes"]) == 3, "a third process")
    assert asked(workers, "control", "cancel_consumer", "celery") == {"ok": "no longer consuming from celery"}
    assert asked(workers, "control", "add_consumer", "celery") == {"ok": "add consumer celery"}


def test_events_and_flower_show_tasks(workers: Workers) -> None:
    port = free_port()
    environment = {**workers.environment, "FLOWER_UNAUTHENTICATED_API": "true", "PYTHONUNBUFFERED": "1"}
    flower = celery(workers, "flower", f"--port={port}", "--address=127.0.0.1", "--inspect_timeout=30000")
    shown = workers.folder / "events"
    with shown.open("wb") as output:
        programs = [
            subprocess.Popen(words, cwd=workers.folder, env=environment, stdout=output, stderr=output)  # noqa: S603
            for words in (celery(workers, "events", "--dump"), flower)
        ]
    try:
        wait_for(lambda: " heartbeat: " in shown.read_text(), "events of the worker")
        wait_for(lambda: NODE in _get(port, "workers?status=true"), "a worker in Flower")
        workers.send(3, first=100)
        wait_for(lambda: shown.read_text().count(" task succeeded: ") >= 3, "events of tasks")
        wait_for(lambda: _succeeded(port) >= 3, "tasks in Flower")
    finally:
        for program in programs:
            program.kill()
            program.wait()


def _get(port: int, what: str) -> Any:
    """Return a document of Flower's API; an empty one while it starts."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/{what}") as reply:
            return json.load(reply)
    except (urllib.error.URLError, ConnectionError):
        return {}


def _succeeded(port: int) -> int:
    return sum(task["state"] == "SUCCESS" for task in _get(port, "tasks").values())
