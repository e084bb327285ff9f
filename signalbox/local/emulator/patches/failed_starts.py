"""Patch: a function's instance that fails to start ends alone.

When an instance fails to start, for example because its process is killed, MiniStack ends all instances of the function
and deletes their folders, including those of instances that are starting. These fail too and end all others again. With
enough callers, no instance of the function starts for as long as they retry: for two minutes after the last of many
kills. On AWS, execution environments do not depend on one another.
"""

from collections.abc import Callable
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

INVOKE = "ministack.core.lambda_runtime:Worker.invoke"
SPAWN = "ministack.core.lambda_runtime:Worker._spawn"
END = "ministack.core.lambda_runtime:kill_workers"
EXECUTE = "ministack.services.lambda_svc:_execute_function_warm"
NOT_STARTED = "the instance did not start"

Result = dict[str, Any]
"""MiniStack's result of an invocation: `status`, then `result` or `error`, `cold_start` and `log`."""


def ending_alone(invoke: Callable[..., Result], end: Callable[[list[object]], None]) -> Callable[..., Result]:
    """Return an `invoke` that ends its own instance when that fails to start, and returns the error as a result."""

    def invoke_or_end(worker: object, *arguments: object, **named: object) -> Result:
        try:
            return invoke(worker, *arguments, **named)
        except Exception as error:  # noqa: BLE001 - whatever the start of an instance raises
            end([worker])
            return {"status": "error", "error": f"{NOT_STARTED}: {error}", "cold_start": True, "log": ""}

    return invoke_or_end


PATCH = Patch(
    sources={
        INVOKE: "96751a75471021ec",
        SPAWN: "c55febf956565c5e",
        END: "56a6df63f9bd4859",
        EXECUTE: "62b9218bef5b948a",
    },
    replacements=lambda: {INVOKE: ending_alone(original(INVOKE), original(END))},
)
