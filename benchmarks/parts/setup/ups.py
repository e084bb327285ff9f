"""Starts a stage twice and prints what each time took; run by each version's own Python, in its own checkout.

The argument is the folder of the stage. Each line is JSON: `name`, `seconds` of the clock, and `processor_seconds` of
this process, the processes that it started, and the emulator with its functions.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from signalbox.local import stage
from signalbox.local.emulator import lifecycle
from signalbox.local.stage_folder import StageFolder

TICKS = os.sysconf("SC_CLK_TCK")


def main(folder: StageFolder) -> None:
    """Start the stage, then update it with nothing changed, and stop it."""
    with lifecycle.lifeline() as lifeline:
        try:
            _measure("a new stage", lambda: stage.up(folder, port=0, lifeline=lifeline), folder)
            running = lifecycle.running(folder)
            port = running.port if running else 0  # earlier versions refuse to move to any other
            _measure("again, nothing changed", lambda: stage.up(folder, port=port, lifeline=lifeline), folder)
        finally:
            stage.down(folder)


def _measure(name: str, act: Callable[[], object], folder: StageFolder) -> None:
    before, began = _processor_seconds(folder), time.perf_counter()
    act()
    seconds = time.perf_counter() - began
    taken = {"name": name, "seconds": seconds, "processor_seconds": _processor_seconds(folder) - before}
    sys.stdout.write(json.dumps(taken) + "\n")
    sys.stdout.flush()


def _processor_seconds(folder: StageFolder) -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + _of_emulator(folder)


def _of_emulator(folder: StageFolder) -> float:
    """Return the processor seconds of the emulator's session: itself, its functions, and those that have ended."""
    leader = lifecycle.process_id(folder)
    return 0 if leader is None else sum(_ticks(path, leader) for path in Path("/proc").glob("[0-9]*/stat")) / TICKS


def _ticks(path: Path, session: int) -> int:
    try:
        fields = path.read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended
        return 0
    return sum(map(int, fields[11:15])) if int(fields[3]) == session else 0


if __name__ == "__main__":
    main(StageFolder(Path(sys.argv[1])))
