"""Enqueues client frames to the inbox on the local stage, whose gateway supports only Lambda integrations."""

from typing import Any

from lambdas.live import wiring
from signalbox.live.model.state import ConnectionId


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Enqueue a WebSocket frame and return status 200."""
    context = event["requestContext"]
    wiring.inbox().put_frame(
        ConnectionId(context["connectionId"]), event.get("body") or "", request=context["requestId"]
    )
    return {"statusCode": 200}
