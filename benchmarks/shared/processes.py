"""Time, processor time and memory of a program and its descendants."""

import json
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.errors import UnavailableError

TICKS = 100  # per second, on every Linux
PAGE_BYTES = 4096
SAMPLE_SECONDS = 0.1
TAIL = 2_000


@dataclass(slots=True)
class Measured:
    """The measurements of one run: total seconds, seconds of each reported part, processor seconds, peak memory."""

    seconds: float = 0
    parts: dict[str, float] = field(default_factory=dict)
    processor_seconds: float = 0
    peak_bytes: int = 0


def run(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Measured:
    """Run a program to its end; it reports its parts as lines of JSON: `{"name": …, "seconds": …}`."""
    measured, began = Measured(), time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    sampler = _Sampler(process.pid)
    sampler.start()
    output, errors = process.communicate()
    measured.seconds = time.perf_counter() - began
    sampler.ended.set()
    sampler.join()
    if process.returncode:
        raise UnavailableError(f"{command[1]} failed:\n{(output + errors)[-TAIL:]}")
    lines = [json.loads(line) for line in output.splitlines() if line.startswith('{"name"')]
    measured.parts = {line["name"]: line["seconds"] for line in lines}
    measured.processor_seconds = sum(sampler.ticks.values()) / TICKS
    measured.peak_bytes = sampler.peak_bytes
    return measured


def usage(pid: int) -> tuple[int, int] | None:
    """Return the processor ticks and the resident bytes of a process, or None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(fields[11]) + int(fields[12]), int(fields[21]) * PAGE_BYTES


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and its descendants so far."""
    return sum(found[0] for one in _tree(pid) if (found := usage(one))) / TICKS


class _Sampler(threading.Thread):
    """Samples a process and its descendants until `ended` is set."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.ended = pid, threading.Event()
        self.ticks: dict[int, int] = {}
        self.peak_bytes = 0

    def run(self) -> None:
        while not self.ended.wait(SAMPLE_SECONDS):
            self.peak_bytes = max(self.peak_bytes, sum(map(self._sample, _tree(self.pid))))

    def _sample(self, pid: int) -> int:
        """Record the processor time of a process, and return its resident memory in bytes."""
        found = usage(pid)
        if found is None:
            return 0
        self.ticks[pid], resident = found
        return resident


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
