"""Patch: the status that a function returns at `$connect` reaches the gateway, which refuses the WebSocket with it.

MiniStack refuses every WebSocket with 403. API Gateway refuses with the status of the function at `$connect`.
"""

from collections.abc import Awaitable, Callable, Mapping

from signalbox.local.emulator.asgi import Message
from signalbox.local.emulator.handshakes import CONNECT_STATUS
from signalbox.local.emulator.patches.patch import Patch, original

MINISTACK = "1.5.33"
INVOKE = "ministack.services.apigateway:_invoke_ws_lambda"
CONNECT = "CONNECT"  # MiniStack's event type of `$connect`

Invoke = Callable[..., Awaitable[Message | None]]


def recording_status(invoke: Invoke) -> Invoke:
    """Return an `invoke` of a WebSocket route's function that records the status which `$connect` returns."""

    async def invoke_and_record(*arguments: object, **named: object) -> Message | None:
        response = await invoke(*arguments, **named)
        if CONNECT in arguments:
            CONNECT_STATUS.set(int((response or {}).get("statusCode", 200)))
        return response

    return invoke_and_record


def _replacements() -> Mapping[str, object]:
    return {INVOKE: recording_status(original(INVOKE))}


PATCH = Patch(module=__name__, version=MINISTACK, sources={INVOKE: "a80872394b0b55f3"}, replacements=_replacements)
