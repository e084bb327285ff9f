"""Patch: the status and the subprotocol that a function returns at `$connect` reach the gateway.

MiniStack refuses every WebSocket with 403, and accepts without a subprotocol. API Gateway does both as the function at
`$connect` returns.
"""

from collections.abc import Awaitable, Callable

from signalbox.local.emulator.asgi import Message
from signalbox.local.emulator.handshakes import CONNECT_STATUS, CONNECT_SUBPROTOCOL
from signalbox.local.emulator.patches.patch import Patch, original

INVOKE = "ministack.services.apigateway:_invoke_ws_lambda"
PROTOCOL_HEADER = "Sec-WebSocket-Protocol"
CONNECT = "CONNECT"  # MiniStack's event type of `$connect`

Invoke = Callable[..., Awaitable[Message | None]]


def recording_response(invoke: Invoke) -> Invoke:
    """Return an `invoke` of a WebSocket route's function that records what `$connect` returns."""

    async def invoke_and_record(*arguments: object, **named: object) -> Message | None:
        response = await invoke(*arguments, **named)
        if CONNECT in arguments:
            headers = (response or {}).get("headers") or {}
            CONNECT_STATUS.set(int((response or {}).get("statusCode", 200)))
            CONNECT_SUBPROTOCOL.set(headers.get(PROTOCOL_HEADER))
        return response

    return invoke_and_record


PATCH = Patch(sources={INVOKE: "a80872394b0b55f3"}, replacements=lambda: {INVOKE: recording_response(original(INVOKE))})
