"""Patch: the response of a function waits 5 ms instead of 50 ms for a first line of its log.

MiniStack waits after each invocation before it returns the response. It has no setting for the wait.
"""

from collections.abc import Mapping
from functools import partialmethod

from signalbox.local.emulator.patches.patch import Patch, original

MINISTACK = "1.5.33"
DRAIN = "ministack.core.lambda_runtime:Worker._drain_stderr_bounded"
LOG_WAIT_SECONDS = 0.005


def _replacements() -> Mapping[str, object]:
    return {DRAIN: partialmethod(original(DRAIN), first_line_wait=LOG_WAIT_SECONDS)}


PATCH = Patch(module=__name__, version=MINISTACK, sources={DRAIN: "3fd7cc742872e604"}, replacements=_replacements)
