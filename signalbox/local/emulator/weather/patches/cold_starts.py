"""Patch: a new instance of a function takes at least a second to start, as on AWS."""

import time
from collections.abc import Callable, Mapping

from signalbox.local.emulator.patches.patch import Patch, original
from signalbox.local.emulator.weather.rules import COLD_START_SECONDS

SPAWN = "ministack.core.lambda_runtime:Worker._spawn"

Spawn = Callable[[object], None]


def slowly(spawn: Spawn, *, clock: Callable[[], float], sleep: Callable[[float], None]) -> Spawn:
    """Return a `spawn` of instances that takes at least a second."""

    def spawn_slowly(worker: object) -> None:
        begun = clock()
        spawn(worker)
        sleep(max(0.0, COLD_START_SECONDS - (clock() - begun)))

    return spawn_slowly


def _replacements() -> Mapping[str, object]:
    return {SPAWN: slowly(original(SPAWN), clock=time.monotonic, sleep=time.sleep)}


PATCH = Patch(sources={SPAWN: "c55febf956565c5e"}, replacements=_replacements)
