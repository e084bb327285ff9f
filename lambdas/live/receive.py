"""Puts what clients say into the inbox: on the local stage, whose gateway knows no other integration."""

from typing import Any

from lambdas.live import wiring
from signalbox.live.session.state import ConnectionId


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return that a frame was taken."""
    context = event["requestContext"]
    wiring.inbox().put_frame(
        ConnectionId(context["connectionId"]), event.get("body") or "", request=context["requestId"]
    )
    return {"statusCode": 200}
