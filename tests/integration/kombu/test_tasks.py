"""Celery's tasks on a stage: each is done, also when workers are killed, and only once when none is."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.shared.counting import tapped
from signalbox.cli.shared.deployment import DEFAULT_STAGE
from signalbox.clients.deployment import LocalDeployment
from signalbox.local.stage_folder import StageFolder
from tests.integration.kombu.programs import Workers, workers_in
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

TASKS, KILLED_EVERY_SECONDS, WORKERS = 10_000, 2, 3
HOLD_SECONDS = 5
LONG_HOLD_SECONDS = 20  # longer than a busy machine keeps a worker from extending it
SEED = 36


@pytest.fixture
def workers(deployed: object, stage_folder: StageFolder, tmp_path: Path) -> Iterator[Workers]:
    with workers_in(tmp_path, stage_folder.path, visibility_seconds=HOLD_SECONDS) as workers:
        yield workers


@pytest.fixture
def steady_workers(deployed: object, stage_folder: StageFolder, tmp_path: Path) -> Iterator[Workers]:
    with workers_in(tmp_path, stage_folder.path, visibility_seconds=LONG_HOLD_SECONDS) as workers:
        yield workers


def test_no_task_is_lost_while_workers_are_killed(workers: Workers) -> None:
    """Every two seconds a worker that receives tasks is killed with its pool, and another one starts."""
    chance, over = random.Random(SEED), threading.Event()  # noqa: S311 - a test
    alive = [workers.start("-c", "2") for _ in range(WORKERS)]

    def kill() -> None:
        while not over.wait(KILLED_EVERY_SECONDS):
            ready = [one for one in alive if one.pid in workers.ready]
            for worker in chance.sample(ready, k=min(1, len(ready))):
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
                alive.remove(worker)
                alive.append(workers.start("-c", "2"))

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        workers.send(TASKS)
        done = workers.await_done(TASKS)
    finally:
        over.set()
        killer.join()

    assert set(done) == set(range(TASKS))
    assert len(workers.running) > WORKERS


def test_without_a_kill_every_task_is_done_once(steady_workers: Workers) -> None:
    """Some last longer than their invisibility, some begin later than that."""
    steady_workers.start("-c", "4")
    steady_workers.send(200)
    steady_workers.send(4, seconds=3 * LONG_HOLD_SECONDS, first=200)
    steady_workers.send(20, countdown=3 * LONG_HOLD_SECONDS, first=204)
    steady_workers.await_done(224)
    # What was visible again would be done by then.
    steady_workers.send(1, countdown=2 * LONG_HOLD_SECONDS, first=224)

    assert steady_workers.await_done(225) == dict.fromkeys(range(225), 1)


@pytest.mark.parametrize("order", [signal.SIGTERM, signal.SIGQUIT], ids=["warm", "cold"])
def test_a_worker_that_is_shut_down_leaves_its_tasks_to_others(steady_workers: Workers, order: signal.Signals) -> None:
    """A warm shutdown ends the running tasks; a cold one stops them, and they are done again."""
    first = steady_workers.start("-c", "2")
    steady_workers.send(40, seconds=0.5)
    steady_workers.await_done(5)
    os.kill(first.pid, order)
    first.wait()
    before = steady_workers.done()
    steady_workers.start("-c", "4")

    done = steady_workers.await_done(40)

    assert before == dict.fromkeys(before, 1)
    assert set(done) == set(range(40))
    if order == signal.SIGTERM:
        assert done == dict.fromkeys(range(40), 1)


def test_a_worker_at_rest_only_polls(
    workers: Workers, deployment: LocalDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its broker URL is that of a stage in AWS, for which the emulator stands."""
    for name, value in deployment.program_environment({}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BROKER", f"signalbox://aws/{DEFAULT_STAGE}?region={deployment.region}")
    with tapped(deployment.endpoint_url) as tap:
        monkeypatch.setenv("AWS_ENDPOINT_URL", tap.endpoint_url)
        workers.start("-c", "1", "--without-heartbeat")
        workers.send(1)
        wait_for(lambda: tap.sqs_calls()["DeleteMessageBatch"], "an acknowledged task")
        before = tap.sqs_calls()

        wait_for(lambda: (tap.sqs_calls() - before)["ReceiveMessage"] >= 4, "two long polls of both queues")

        assert set(tap.sqs_calls() - before) == {"ReceiveMessage"}
