"""Benchmark of the first output of commands that only ask, on a local stage: `python -m benchmarks.first_output`."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.shared.command import parser, status
from benchmarks.shared.figures import Summary, summary
from benchmarks.shared.headlines import Headline, keep
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table, show
from benchmarks.shared.stage import running_stage
from signalbox.cli.shared.output import print_json
from signalbox.errors import RejectedError, UnavailableError
from signalbox.local.files import CHECKOUT
from signalbox.local.progress import step
from signalbox.local.stage_folder import StageFolder

PARTS = ("commands",)
ROUNDS = 5
QUEUE = "q_source_first_output"
LIMIT = 1.0  # seconds to the first output

REFUSING = "http://127.0.0.1:1"  # a port that no program listens on
# What the first call of a command needs of a stage.
OUTPUTS = ("HistoryBucket", "HistoryDatabase", "HistoryTable", "SplitTable", "ExchangeTable", "ExchangePrefix")
OUTPUTS += ("ExchangeControlQueueUrl", "SplitControlQueueUrl", "SplitReplyQueuePrefix", "RendezvousTable")
OUTPUTS += ("ClientUserName", "ClientSecretArn", "BridgeFingerprints", "TemporaryQueuePrefix")
REFUSED: Mapping[str, Any] = {
    "endpoint_url": REFUSING,
    "region": "eu-west-1",
    "rendezvous_url": f"{REFUSING}/rendezvous/",
    "admin_credentials": {"access_key_id": "AKIA1", "secret_access_key": "none"},
    "outputs": {**dict.fromkeys(OUTPUTS, "x"), "ActivitySources": "{}"},
}
"""The local.json of a stage that refuses each call: a command does what comes before its first call, and ends."""

# Every command that only asks; `{exchange}` and `{queue}` are those of the stage.
COMMANDS: Sequence[Sequence[str]] = (
    ("--help",),
    ("--version",),
    ("local", "status"),
    ("doctor",),
    ("status",),
    ("status", "{exchange}"),
    ("exchange", "list"),
    ("queue", "list"),
    ("bindings", "{exchange}"),
    ("bind", "{exchange}", "{queue}", "speed.#", "--dry-run"),
    ("bind", "{exchange}", "{queue}", "speed.#", "--dry-run", "--over", "2h"),
    ("user", "list"),
    ("grant", "list"),
    ("grant", "explain", "source", "speed.a"),
    ("group", "list", "{exchange}"),
    ("split", "list"),
    ("split", "status"),
    ("split", "registry", "list"),
    ("split", "explain", "--over", "2h"),
    ("rendezvous", "stats"),
    ("rendezvous", "credentials"),
    ("keep", "list"),
    ("top", "--once"),
    ("trace", "00000000-0000-0000-0000-000000000000"),
    ("history", "query", "SELECT 1"),
)


@dataclass(frozen=True, slots=True)
class FirstOutput:
    """The seconds from the start of a command to its first output and to its end, and its processor time."""

    command: str
    exit_code: int
    first: Summary
    whole: Summary
    processor: Summary
    text: str


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a run."""

    machine: Machine
    commands: Sequence[FirstOutput] = ()


def main(arguments: Sequence[str]) -> int:
    """Measure and print the results."""
    options = _options(arguments)
    return status(lambda: _print(_measured(options), options))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    options = parser("first_output", __doc__, parts=PARTS, page="benchmarks/README.md")
    options.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each command (default: %(default)s)")
    options.add_argument("--command", action="append", help="only commands that begin with these words; repeatable")
    where = options.add_mutually_exclusive_group()
    where.add_argument("--folder", type=Path, help="use the running local stage of this folder, such as .signalbox")
    where.add_argument(
        "--refused", action="store_true", help="use no stage: the processor time up to a first call, which is refused"
    )
    return options.parse_args(arguments)


def _measured(options: argparse.Namespace) -> Results:
    command = " ".join(["python -m benchmarks.first_output", *sys.argv[1:]])
    machine = replace(this_machine(upstream=None), command=command)
    with _stage(options) as local, _folder_of(local) as folder, step("commands") as say:
        names = {"exchange": local.get("realm") or "xpublic", "queue": QUEUE}
        if not options.refused:
            _declare(folder)
        found = [
            _measure([word.format(**names) for word in words], folder, rounds=options.rounds)
            for words in COMMANDS
            if _is_wanted(words, options.command)
            for _ in [say(" ".join(words))]
        ]
    return Results(machine, found)


@contextmanager
def _stage(options: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    if options.refused:
        yield REFUSED
        return
    if options.folder is None:
        with running_stage(port=options.port) as stage:
            yield stage.local
        return
    state = StageFolder(options.folder.resolve())
    if not state.local.is_file():
        raise RejectedError(f"no local stage runs in {str(options.folder)!r}")
    yield json.loads(state.local.read_text())


@contextmanager
def _folder_of(local: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a folder in which commands find the stage."""
    with tempfile.TemporaryDirectory() as name:
        state = Path(name, ".signalbox")
        state.mkdir()
        (state / "local.json").write_text(json.dumps(local))
        yield Path(name)


def _declare(folder: Path) -> None:
    *_, code, line = _run(["queue", "declare", QUEUE], folder)
    if code:
        raise UnavailableError(f"the queue of the benchmark cannot be declared: {line}")


def _is_wanted(words: Sequence[str], beginnings: Sequence[str] | None) -> bool:
    return beginnings is None or any(" ".join(words).startswith(one) for one in beginnings)


def _measure(words: Sequence[str], folder: Path, *, rounds: int) -> FirstOutput:
    """Run a command several times; the first run, which reads files into memory, does not count."""
    runs = [_run(words, folder) for _ in range(rounds + 1)][1:]
    first, whole, processor = (summary([run[number] for run in runs]) for number in range(3))
    return FirstOutput(" ".join(words), runs[-1][3], first, whole, processor, runs[-1][4])  # type: ignore[arg-type]  # never empty


def _run(words: Sequence[str], folder: Path) -> tuple[float, float, float, int, str]:
    program = "import sys; from signalbox.cli.main import main; sys.argv[0] = 'signalbox'; main()"
    read, write = os.pipe()
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=write,
        stderr=write,
    )
    os.close(write)
    with os.fdopen(read, "rb") as output:
        text = output.read(1)
        first = time.perf_counter() - began
        text += output.read()
    # The processor time of this child alone.
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    whole = time.perf_counter() - began
    line = text.decode(errors="replace").strip().partition("\n")[0]
    return first, whole, usage.ru_utime + usage.ru_stime, process.returncode, line


def _environment(folder: Path) -> Mapping[str, str]:
    """Return the environment of commands, in which Python keeps compiled modules as it does by default."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**ours, "PYTHONPATH": str(CHECKOUT), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def headlines(results: Results) -> Iterator[Headline]:
    """Yield the slowest first output, if all commands were measured."""
    if len(results.commands) == len(COMMANDS):
        slowest = max(results.commands, key=lambda one: one.first.median)
        what = f"seconds to the first output of {len(COMMANDS)} commands that ask, the slowest (`{slowest.command}`)"
        yield Headline(what, f"{slowest.first.median:.2f}", f"limit: {LIMIT:g}")


def _print(results: Results, options: argparse.Namespace) -> None:
    if not options.refused:
        keep("first_output", headlines(results), results.machine)
    if options.json:
        print_json(asdict(results))
        return
    note = "Medians; " + ("each call is refused." if options.refused else "on a local stage.")
    promises = () if options.refused else [_promise(results.commands)]
    show([_table(results, note)], promises, machine=results.machine, as_document=options.markdown)


def _promise(commands: Sequence[FirstOutput]) -> tuple[str, bool]:
    slow = [one.command for one in commands if one.first.median > LIMIT]
    late = f": {', '.join(slow)}" if slow else ""
    return f"the first output of each command is there within {LIMIT:g} s{late}", not slow


def _table(results: Results, note: str) -> Table:
    columns = ["command", "first output, s", "at most", "end, s", "processor s", "exit", "first line"]
    rows = [
        [
            f"`{one.command}`",
            f"{one.first.median:.2f}",
            f"{one.first.maximum:.2f}",
            f"{one.whole.median:.2f}",
            f"{one.processor.median:.2f}",
            str(one.exit_code),
            one.text[:60].replace("|", "/"),
        ]
        for one in results.commands
    ]
    return Table("From the start of a command to its first output", columns, rows, note)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
