"""Tasks a second, latency and calls of AWS of one broker."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.shared.figures import Summary, summary
from tests.patience import wait_for

PROGRAM = Path(__file__).with_name("program.py")
LATENCIES, PAUSE_SECONDS = 30, 0.2
REST_SECONDS = 45
# SQS gives messages to the poll of a worker that has ended, which then are hidden for the visibility time.
POLL_SECONDS = 21


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker: its name, the URL for programs, Celery's options for it, and the calls of AWS so far."""

    name: str
    url: str
    options: Mapping[str, object] = field(default_factory=dict)
    calls: Callable[[], Counter[str]] = Counter


@dataclass(frozen=True, slots=True)
class TaskRun:
    """The figures of a broker with a number of worker processes."""

    broker: str
    workers: int
    per_second: float
    calls_per_task: float | None
    latency: Summary | None = None
    calls_at_rest: Mapping[str, int] | None = None


def measure(broker: Broker, folder: Path, *, workers: int, tasks: int) -> TaskRun:
    """Send tasks, start the worker and time it from its first to its last task; then measure latencies."""
    folder.mkdir(parents=True)
    environment = _environment(broker, folder)
    _send(folder, environment, 1, 0)
    with _worker(folder, environment, workers):  # declares the queue, for every broker alike
        wait_for(lambda: len(_begun(folder)) >= 1, f"the first task of {broker.name}")
    (folder / "done").unlink()
    before = broker.calls()
    _send(folder, environment, tasks, 0)
    with _worker(folder, environment, workers):
        wait_for(
            lambda: len(_begun(folder)) >= tasks, f"{tasks} tasks of {broker.name}", progress=lambda: _begun(folder)
        )
        begun = _begun(folder)
        rate = (tasks - 1) / (max(begun.values()) - min(begun.values()))
        time.sleep(1)  # for acknowledgements on their way
        calls = (broker.calls() - before).total() / tasks or None
        if workers > 1:
            return TaskRun(broker.name, workers, rate, calls)
        (folder / "done").unlink()
        sent = _send(folder, environment, LATENCIES, PAUSE_SECONDS)
        wait_for(lambda: len(_begun(folder)) >= LATENCIES, f"the last task of {broker.name}")
        latency = summary([1000 * (at - sent[number]) for number, at in _begun(folder).items()])
        before = broker.calls()
        time.sleep(REST_SECONDS)
        return TaskRun(broker.name, workers, rate, calls, latency, dict(broker.calls() - before))


def _environment(broker: Broker, folder: Path) -> dict[str, str]:
    own = {"BROKER": broker.url, "OPTIONS": json.dumps(broker.options), "DONE": str(folder / "done")}
    return {**os.environ, **own, "PYTHONPATH": str(PROGRAM.parent)}


def _send(folder: Path, environment: dict[str, str], count: int, pause: float) -> dict[int, float]:
    words = [sys.executable, str(PROGRAM), str(count), str(pause)]
    sent = subprocess.run(words, cwd=folder.parent, env=environment, check=True, capture_output=True, text=True)
    return _times(sent.stdout)


def _begun(folder: Path) -> dict[int, float]:
    path = folder / "done"
    return _times(path.read_text()) if path.exists() else {}


def _times(text: str) -> dict[int, float]:
    return {int(number): float(at) for number, at in (line.split() for line in text.splitlines())}


@contextmanager
def _worker(folder: Path, environment: dict[str, str], processes: int) -> Iterator[None]:
    """Run a worker of Celery; a warm shutdown ends it."""
    words = [sys.executable, "-m", "celery", "-A", "program", "worker", "-c", str(processes), "-l", "WARNING"]
    words += ["--without-heartbeat"]  # as for any broker whose messages cost
    with (folder / "log").open("ab") as log:
        worker = subprocess.Popen(words, cwd=folder.parent, env=environment, stdout=log, stderr=log)
        try:
            yield
        finally:
            worker.terminate()
            worker.wait()
            time.sleep(POLL_SECONDS)
