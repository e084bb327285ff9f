"""Patch: a function that one chain of requests invokes again and again through queues is stopped.

MiniStack counts direct invocations only. Lambda counts by the trace header, which SDKs send from functions and queues
keep with the messages; the mapping gets RecursiveInvocationException, so the message comes again until its queue
dead-letters it.
"""

import contextvars
from collections.abc import Callable, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original
from signalbox.local.emulator.weather.lineage import is_looping, lineage_of, with_trace_header

LAMBDA = "ministack.services.lambda_svc"
DISPATCH, TRACE_ID = f"{LAMBDA}:_execute_function_dispatch", f"{LAMBDA}:_xray_trace_id_for_invocation"
WARM = f"{LAMBDA}:_execute_function_warm"
FUNCTIONS = f"{LAMBDA}:_functions"
# Replaced by `message_senders`, which has its digest.
BUILD = "ministack.services.sqs:_build_send_sys_attrs"
STOPPED = "Lambda has detected your function being invoked in a recursive loop and stopped its invocation: "

Result = dict[str, Any]
Dispatch = Callable[..., Result]
# The trace header of the invocation that runs in this thread.
HEADER: contextvars.ContextVar[str] = contextvars.ContextVar("trace_header", default="")


def stopping_loops(dispatch: Dispatch, is_allowed: Callable[[str], bool]) -> Dispatch:
    """Return a `dispatch` of invocations that stops loops; `is_allowed` says whether a function may loop."""

    def dispatch_or_stop(
        function: object,
        config: Mapping[str, Any],
        event: Any,  # noqa: ANN401 - any event
        *others: object,
    ) -> Result:
        name: str = config.get("FunctionName", "")
        lineage = lineage_of(event, name)
        if is_looping(lineage, name) and not is_allowed(name):
            body = {"errorType": "RecursiveInvocationException", "errorMessage": STOPPED + name}
            return {"error": True, "body": body, "log": ""}
        token = HEADER.set(lineage.after(name).header())
        try:
            return dispatch(function, config, event, *others)
        finally:
            HEADER.reset(token)

    return dispatch_or_stop


def _trace_id(_config: object, inbound: str | None = None) -> str | None:
    return inbound or HEADER.get() or None


def _replacements() -> Mapping[str, object]:
    functions, build = original(FUNCTIONS), original(BUILD)

    def is_allowed(name: str) -> bool:
        return bool((functions.get(name) or {}).get("recursive_loop") == "Allow")

    def build_with_trace(*arguments: object) -> dict[str, str]:
        return with_trace_header(build(*arguments))

    return {
        DISPATCH: stopping_loops(original(DISPATCH), is_allowed),
        TRACE_ID: _trace_id,
        BUILD: build_with_trace,
    }


PATCH = Patch(
    sources={
        DISPATCH: "f62cd259213ecef7",
        TRACE_ID: "46cbd1c5214a6df2",
        WARM: "62b9218bef5b948a",
    },
    replacements=_replacements,
)
