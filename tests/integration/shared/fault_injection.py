"""Fault injection: kills function instances at random moments."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.local.processes import processes_naming_each
from signalbox.local.stage_folder import StageFolder

STARTING_SECONDS = 3


@dataclass(frozen=True, slots=True)
class FaultInjector:
    """Kills all instances of one function, chosen at random, at each kill."""

    stage_folder: StageFolder
    functions: Sequence[str]
    """Their names in AWS."""
    spared_seconds: float = STARTING_SECONDS
    """Age below which an instance is not killed."""
    spared_processor_seconds: float = 0.0
    """Time of a processor below which an instance is not killed: on a busy machine its start takes longer."""
    chance: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311 - the choice is no secret

    @contextmanager
    def continuous_kills(
        self, *, between: tuple[float, float], is_enough: Callable[[Sequence[float]], bool] = lambda _: False
    ) -> Iterator[list[float]]:
        """Kill until the block ends, while not `is_enough`; yield the list of the kills' times on the monotonic clock.

        `is_enough` gets that list and may be false again later.
        """
        kills: list[float] = []
        stopping = threading.Event()
        thread = threading.Thread(target=self._until, args=(stopping, between, kills, is_enough), daemon=True)
        thread.start()
        try:
            yield kills
        finally:
            stopping.set()
            thread.join()

    def _until(
        self,
        stopping: threading.Event,
        between: tuple[float, float],
        kills: list[float],
        is_enough: Callable[[Sequence[float]], bool],
    ) -> None:
        first_seen: dict[int, float] = {}
        while not stopping.wait(self.chance.uniform(*between)):
            if not is_enough(kills) and (running := self._started(first_seen)):
                self._kill_one(running)
                kills.append(time.monotonic())

    def _kill_one(self, running: list[list[int]]) -> None:
        for instance in self.chance.choice(running):
            with suppress(ProcessLookupError):
                os.kill(instance, signal.SIGKILL)

    def _started(self, first_seen: dict[int, float]) -> list[list[int]]:
        """Return the process ids of each function that has instances, without recently started ones.

        Kills interrupt the work of instances, not their start.
        """
        now, running = time.monotonic(), self._running()
        for instance in (instance for instances in running for instance in instances):
            first_seen.setdefault(instance, now)
        old = [[i for i in instances if now - first_seen[i] >= self.spared_seconds] for instances in running]
        used = [[i for i in instances if _processor_seconds(i) >= self.spared_processor_seconds] for instances in old]
        return [instances for instances in used if instances]

    def _running(self) -> list[list[int]]:
        """Return the process ids of the instances of each function."""
        folders = f"{self.stage_folder.temporary}{os.sep}ministack-lambda-"
        return processes_naming_each([f"{folders}{name}-" for name in self.functions])


def _processor_seconds(process: int) -> float:
    """Return the time that a process has had a processor; 0 for one that has ended (proc_pid_stat(5): 14 and 15)."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
