"""Benchmark of Celery on a stage, on `sqs://` and on RabbitMQ: `python -m benchmarks.celery`."""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks.parts.celery.measure import Broker, TaskRun, measure
from benchmarks.shared.command import parser, report
from benchmarks.shared.counting import tapped
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table
from benchmarks.shared.stage import FOLDER, Stage, running_stage
from signalbox.local.progress import step
from tests import rabbitmq

OURS, SQS, RABBITMQ = "Signalbox", "sqs://", "RabbitMQ"
WORKERS = (1, 4)
TASKS = 1_000


@dataclass(frozen=True, slots=True)
class Results:
    """All results of a run."""

    machine: Machine
    runs: Sequence[TaskRun] = ()


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark and print its table."""
    options = parser("celery", __doc__, parts=(OURS, SQS, RABBITMQ), page="docs/celery.md")
    options.add_argument("--tasks", type=int, default=TASKS, help="tasks of each run (default: %(default)s)")
    parsed = options.parse_args(arguments)
    return report(parsed, lambda: _measured(parsed), tables=tables, targets=targets)


def _measured(options: argparse.Namespace) -> Results:
    machine, runs = this_machine("celery"), list[TaskRun]()
    with ExitStack() as open_until_end:
        folder = Path(open_until_end.enter_context(tempfile.TemporaryDirectory()))
        stage = open_until_end.enter_context(running_stage(port=options.port))
        (folder / ".signalbox").symlink_to(FOLDER)
        for broker in _brokers(stage, folder, open_until_end):
            if options.only and broker.name not in options.only:
                continue
            for workers in WORKERS:
                with step(f"{broker.name}, {workers} processes"):
                    runs.append(measure(broker, folder / f"{len(runs)}", workers=workers, tasks=options.tasks))
    return Results(machine, runs)


def _brokers(stage: Stage, folder: Path, open_until_end: ExitStack) -> Iterator[Broker]:
    tap = open_until_end.enter_context(tapped(stage.local["endpoint_url"]))
    address = urlsplit(tap.endpoint_url).netloc
    yield Broker(OURS, f"signalbox://local:{address.rpartition(':')[2]}", calls=tap.sqs_calls)
    keys = stage.local["admin_credentials"]
    key = f"{quote(keys['access_key_id'], safe='')}:{quote(keys['secret_access_key'], safe='')}"
    options = {
        "is_secure": False,
        "region": stage.local["region"],
        "queue_name_prefix": "bench-",
        "wait_time_seconds": 20,
    }
    yield Broker(SQS, f"sqs://{key}@{address}", options, tap.sqs_calls)
    if rabbitmq.is_installed():
        (folder / "rabbitmq").mkdir()
        yield Broker(RABBITMQ, open_until_end.enter_context(rabbitmq.running(folder / "rabbitmq")).url)


def tables(results: Results) -> Iterator[Table]:
    """Yield the table of results."""
    columns = [
        "Broker, worker processes",
        "tasks a second",
        "calls of AWS a task",
        "ms to start: median",
        "p95",
        "at rest",
    ]
    rows = [
        [
            f"{run.broker}, {run.workers}",
            f"{run.per_second:,.0f}",
            f"{run.calls_per_task:.2f}" if run.calls_per_task else "-",
            *((f"{run.latency.median:,.0f}", f"{run.latency.p95:,.0f}") if run.latency else ("-", "-")),
            ", ".join(f"{count} {name}" for name, count in (run.calls_at_rest or {}).items()) or "-",
        ]
        for run in results.runs
    ]
    yield Table(
        "Tasks of Celery", columns, rows, "Calls of AWS are those of sender and worker. At rest: in 45 seconds."
    )


def targets(results: Results) -> Iterator[tuple[str, bool]]:
    """Yield the promises, and whether the run kept them."""
    rates = {(run.broker, run.workers): run.per_second for run in results.runs}
    for workers in WORKERS:
        if {(OURS, workers), (SQS, workers)} <= rates.keys():
            yield f"as fast as sqs:// with {workers}", rates[OURS, workers] >= rates[SQS, workers]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
