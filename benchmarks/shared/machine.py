"""The machine and the command of a benchmark run."""

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from signalbox.local.setup import EMULATOR_REQUIREMENTS


@dataclass(frozen=True, slots=True)
class Machine:
    """The conditions of a run, for the comparison of two runs."""

    cores: int
    memory_gigabytes: int
    load_before: float
    system: str
    python: str
    emulator: str
    upstream: str | None
    """Versions of upstream's module and of Go, or None where the comparison was skipped."""
    command: str

    @property
    def is_busy(self) -> bool:
        """Return whether other processes used most of the machine when the run began."""
        return self.load_before > self.cores / 2


def this_machine(program: str, *, upstream: str | None = None) -> Machine:
    """Describe this machine and the command of a benchmark; call it before the run starts any process."""
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Machine(
        cores=os.cpu_count() or 1,
        memory_gigabytes=round(pages * page_bytes / 2**30),
        load_before=round(os.getloadavg()[0], 1),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        emulator=_emulator(EMULATOR_REQUIREMENTS),
        upstream=upstream,
        command=" ".join([f"python -m benchmarks.{program}", *sys.argv[1:]]),
    )


def _emulator(requirements: Path) -> str:
    lines = requirements.read_text().splitlines()
    return next((line.partition("#")[0].strip() for line in lines if line.startswith("ministack")), "ministack")
