"""Memory and processor time of the stage's functions while a load runs."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.shared.processes import TICKS, usage
from signalbox.local.processes import processes_naming
from signalbox.local.stage_folder import StageFolder

SAMPLE_SECONDS = 1.0
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class FunctionUse:
    """What a function used: `instances` is the number of its processes, `at_once` the most at the same time."""

    function: str
    instances: int
    at_once: int
    peak_megabytes: float
    """Of one instance."""
    processor_seconds: float
    """Of all instances, without their last second."""


@dataclass(slots=True)
class FunctionSampler:
    """Samples the instances of functions, whose names in AWS are given by the names to show."""

    folder: StageFolder
    functions: Mapping[str, str]
    _ticks: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _at_once: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _peak: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Sample within the context."""
        over = threading.Event()
        thread = threading.Thread(target=self._until, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def uses(self) -> Sequence[FunctionUse]:
        """Return the use of each function that had an instance, by name."""
        return [
            FunctionUse(
                name,
                len(ticks),
                self._at_once[name],
                round(self._peak[name] / MEGABYTE, 1),
                round(sum(ticks.values()) / TICKS, 1),
            )
            for name, ticks in sorted(self._ticks.items())
        ]

    def _until(self, over: threading.Event) -> None:
        while not over.is_set():
            began = time.monotonic()
            for name, in_aws in self.functions.items():
                self._sample(name, processes_naming(f"{self.folder.temporary}{os.sep}ministack-lambda-{in_aws}-"))
            over.wait(max(0.0, began + SAMPLE_SECONDS - time.monotonic()))

    def _sample(self, name: str, instances: Sequence[int]) -> None:
        found = {pid: used for pid in instances if (used := usage(pid)) is not None}
        self._at_once[name] = max(self._at_once[name], len(found))
        for pid, (ticks, resident) in found.items():
            self._ticks[name][pid] = ticks
            self._peak[name] = max(self._peak[name], resident)
