"""Runs a program and measures it with all that it starts: time, processor time, memory."""

import json
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.errors import UnavailableError

TICKS = 100  # a second, on every Linux
PAGE_BYTES = 4096
LOOK_SECONDS = 0.1
TAIL = 2_000


@dataclass(slots=True)
class Measured:
    """One run: seconds in all and of each part that it told of, seconds of all processors, the most memory."""

    seconds: float = 0
    parts: dict[str, float] = field(default_factory=dict)
    processor_seconds: float = 0
    peak_bytes: int = 0


def run(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Measured:
    """Run a program to its end; lines of JSON that it prints tell of its parts: `{"name": …, "seconds": …}`."""
    measured, began = Measured(), time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watch = _Watch(process.pid)
    watch.start()
    printed, complained = process.communicate()
    measured.seconds = time.perf_counter() - began
    watch.ended.set()
    watch.join()
    if process.returncode:
        raise UnavailableError(f"{command[1]} failed:\n{(printed + complained)[-TAIL:]}")
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith('{"name"')]
    measured.parts = {line["name"]: line["seconds"] for line in lines}
    measured.processor_seconds = sum(watch.ticks.values()) / TICKS
    measured.peak_bytes = watch.peak_bytes
    return measured


class _Watch(threading.Thread):
    """Looks at a process and its descendants until it is told that they have ended."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.ended = pid, threading.Event()
        self.ticks: dict[int, int] = {}
        self.peak_bytes = 0

    def run(self) -> None:
        while not self.ended.wait(LOOK_SECONDS):
            self.peak_bytes = max(self.peak_bytes, sum(map(self._look, _tree(self.pid))))

    def _look(self, pid: int) -> int:
        """Note the processor time of a process, and return its memory."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return 0
        self.ticks[pid] = int(fields[11]) + int(fields[12])
        return int(fields[21]) * PAGE_BYTES


def _tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        try:
            children = Path(f"/proc/{one}/task/{one}/children").read_text().split()
            tasks = [int(task.name) for task in Path(f"/proc/{one}/task").iterdir() if int(task.name) != one]
            children += [
                child for task in tasks for child in Path(f"/proc/{one}/task/{task}/children").read_text().split()
            ]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [int(child) for child in children if int(child) not in found]
    return found
