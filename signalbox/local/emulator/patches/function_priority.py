"""Patch: processes of functions give way to the emulator.

On AWS, queues and tables do not share processors with functions. Here a burst of cold starts occupies all processors,
and every call of the functions that have started waits for an emulator that does not run: they reach their time-outs,
are started again, and keep the machine busy. With a lower priority for functions the emulator answers first.
"""

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

MINISTACK = "1.5.33"
SPAWN = "ministack.core.lambda_runtime:Worker._spawn"
SUBPROCESS = "ministack.core.lambda_runtime:subprocess"
NICENESS = 10  # added to the emulator's own; a process of niceness 10 gets a tenth of the time of one of niceness 0


def with_low_priority(popen: "Callable[..., subprocess.Popen[Any]]") -> "Callable[..., subprocess.Popen[Any]]":
    """Return a `Popen` whose processes have a lower priority than this one."""

    def started(*arguments: object, **named: object) -> "subprocess.Popen[Any]":
        process = popen(*arguments, **named)
        with suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
        return process

    return started


def _replacements() -> Mapping[str, object]:
    namespace = vars(original(SUBPROCESS))
    return {SUBPROCESS: SimpleNamespace(**{**namespace, "Popen": with_low_priority(namespace["Popen"])})}


PATCH = Patch(
    module=__name__,
    version=MINISTACK,
    sources={SPAWN: "c55febf956565c5e", SUBPROCESS: None},
    replacements=_replacements,
)
