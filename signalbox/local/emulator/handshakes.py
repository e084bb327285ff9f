"""The parts of a WebSocket handshake that MiniStack lacks: the subprotocol and the status of a refusal."""

import contextvars

from signalbox.local.emulator.asgi import Message, Send

FIRST_REFUSAL = 300  # the lowest HTTP status of the `$connect` function that refuses the connection
# The status and the subprotocol that the function at `$connect` returned, in the task of that connection. The patch
# `websocket_handshakes` sets both.
CONNECT_STATUS: contextvars.ContextVar[int] = contextvars.ContextVar("connect_status", default=200)
CONNECT_SUBPROTOCOL: contextvars.ContextVar[str | None] = contextvars.ContextVar("connect_subprotocol", default=None)


def with_subprotocol(send: Send) -> Send:
    """Return a `send` that accepts with the subprotocol that `$connect` returned; MiniStack names none."""

    async def send_with_subprotocol(message: Message) -> None:
        subprotocol = CONNECT_SUBPROTOCOL.get()
        if subprotocol and message["type"] == "websocket.accept" and not message.get("subprotocol"):
            message = {**message, "subprotocol": subprotocol}
        await send(message)

    return send_with_subprotocol


def with_refusal_status(send: Send) -> Send:
    """Return a `send` that refuses a WebSocket with the status that `$connect` returned, as API Gateway does.

    MiniStack closes the connection, which the server turns into a 403. AWS documents no body for the refusal, so the
    body is empty.
    """
    is_first = True

    async def send_with_status(message: Message) -> None:
        nonlocal is_first
        was_first, is_first = is_first, False
        status = CONNECT_STATUS.get()
        if not was_first or message["type"] != "websocket.close" or status < FIRST_REFUSAL:
            await send(message)
            return
        await send({"type": "websocket.http.response.start", "status": status, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b""})

    return send_with_status
