"""The process of a handler: loads `module.function` and calls it for each line on a pipe.

It imports nothing of Signalbox and runs in the Python of the handler's project, from 3.8 on.
"""

from __future__ import annotations

import decimal
import importlib
import json
import os
import signal
import sys
import time
import traceback
from typing import Any, Callable, Mapping  # noqa: UP035 - of Python 3.8

REQUESTS, REPLIES = "SIGNALBOX_HANDLER_REQUESTS", "SIGNALBOX_HANDLER_REPLIES"
# Audit events of debuggers: `breakpoint()`, pdb, and those that use sys.monitoring.
DEBUGGING = frozenset({"builtins.breakpoint", "sys.settrace", "sys.monitoring.register_callback"})


class CognitoIdentity:
    """`context.identity`, which has no values for events of SQS."""

    cognito_identity_id = None
    cognito_identity_pool_id = None


class LambdaContext:
    """Lambda's context object; `deadline` is in seconds since 1970, None while no time-out ends the handler."""

    client_context = None
    tenant_id = None

    def __init__(self, request_id: str, function_arn: str, *, deadline: float | None, timeout: float) -> None:
        self.aws_request_id = request_id
        self.invoked_function_arn = function_arn
        self.function_name = os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
        self.function_version = os.environ.get("AWS_LAMBDA_FUNCTION_VERSION")
        self.memory_limit_in_mb = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
        self.log_group_name = os.environ.get("AWS_LAMBDA_LOG_GROUP_NAME")
        self.log_stream_name = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
        self.identity = CognitoIdentity()
        self._deadline, self._timeout = deadline, timeout

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the time-out; the whole time-out while none is enforced."""
        if self._deadline is None:
            return int(self._timeout * 1000)
        return max(0, int((self._deadline - time.time()) * 1000))

    def stop_clock(self) -> None:
        """Take the deadline away."""
        self._deadline = None


class Debuggers:
    """Notices that a debugger is used during an invocation, and calls `on_use` once."""

    def __init__(self, on_use: Callable[[], None]) -> None:
        self._on_use = on_use
        self._context: LambdaContext | None = None
        sys.addaudithook(self._audit)

    def watch(self, context: LambdaContext) -> None:
        """Begin an invocation, perhaps with a debugger that was attached before."""
        self._context = context
        monitoring = getattr(sys, "monitoring", None)
        if sys.gettrace() is not None or (monitoring and monitoring.get_tool(monitoring.DEBUGGER_ID)):
            self._note()

    def forget(self) -> None:
        """End the invocation."""
        self._context = None

    def _audit(self, event: str, _arguments: object) -> None:
        if event in DEBUGGING:
            self._note()

    def _note(self) -> None:
        if self._context is not None:
            self._context.stop_clock()
            self._context = None
            self._on_use()


def main(name: str) -> None:
    """Serve invocations until the pipe is closed."""
    requests = os.fdopen(int(os.environ.pop(REQUESTS)), encoding="utf-8")
    replies = os.fdopen(int(os.environ.pop(REPLIES)), "w", encoding="utf-8")
    # Ctrl-C ends the session, and the session ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def reply(**fields: object) -> None:
        replies.write(json.dumps(fields) + "\n")
        replies.flush()

    try:
        handler = loaded(name)
    except Exception as error:  # noqa: BLE001 - whatever the user's module raises
        traceback.print_exc()
        reply(failed=described(error))
        return
    debuggers = Debuggers(lambda: reply(debugging=True))
    reply(ready=True)
    for line in requests:
        reply(**served(handler, json.loads(line), debuggers))


def loaded(name: str) -> Callable[[Any, LambdaContext], object]:
    """Return the function `module.function`; as in Lambda, `folder/module.function` names it too."""
    module, _, function = name.rpartition(".")
    found: Callable[[Any, LambdaContext], object] = getattr(importlib.import_module(module.replace("/", ".")), function)
    return found


def served(
    handler: Callable[[Any, LambdaContext], object], request: Mapping[str, Any], debuggers: Debuggers
) -> dict[str, object]:
    """Call the handler for one event; return its response as JSON text, or its error."""
    deadline, timeout = request["deadline"], request["timeout"]
    context = LambdaContext(request["request_id"], request["function_arn"], deadline=deadline, timeout=timeout)
    debuggers.watch(context)
    try:
        response = handler(request["event"], context)
    except Exception as error:  # noqa: BLE001 - whatever the user's handler raises
        traceback.print_exc()
        return {"error": described(error)}
    finally:
        debuggers.forget()
        sys.stdout.flush()
    try:
        return {"response": json.dumps(response, default=number)}
    except (TypeError, ValueError) as error:
        return {"error": "Runtime.MarshalError: Unable to marshal response: " + str(error)}


def number(value: object) -> float:
    """Return a decimal as a number, as Lambda's runtime does."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError("Object of type " + type(value).__name__ + " is not JSON serializable")


def described(error: Exception) -> str:
    """Return an error as one line."""
    return type(error).__name__ + ": " + str(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
