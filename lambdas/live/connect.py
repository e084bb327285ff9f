"""Begins the sessions of connections, and hears when a client has closed one."""

from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Any

from lambdas.live import wiring
from signalbox.aws.live.sessions import DynamoThrottle
from signalbox.live.session.connection import PROTOCOL_HEADER, Refusal, protocol_refusal, storm_refusal
from signalbox.live.session.state import ConnectionId, Lost, opened
from signalbox.live.wamp.codec import SUBPROTOCOL


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return whether a connection may begin, and the subprotocol that it has then."""
    context = event["requestContext"]
    connection = ConnectionId(context["connectionId"])
    if context["routeKey"] == "$disconnect":
        wiring.inbox().tell(connection, Lost(), request=context["requestId"])
        return {"statusCode": int(HTTPStatus.OK)}
    headers = event.get("headers") or {}
    now = datetime.fromtimestamp(context["requestTimeEpoch"] / 1000, UTC)
    refusal = protocol_refusal(headers) or storm_refusal(_throttle().count(now=now))
    return _refused(refusal) if refusal else _begun(connection, headers, now)


def _begun(connection: ConnectionId, headers: dict[str, str], now: datetime) -> dict[str, Any]:
    user_agent = next((value for name, value in headers.items() if name.lower() == "user-agent"), "")
    wiring.sessions().open(opened(connection, now=now, user_agent=user_agent))
    wiring.timers().start(connection)
    return {"statusCode": int(HTTPStatus.OK), "headers": {PROTOCOL_HEADER: SUBPROTOCOL}}


def _refused(refusal: Refusal) -> dict[str, Any]:
    return {"statusCode": int(refusal.status), "body": refusal.reason}


@cache
def _throttle() -> DynamoThrottle:
    return DynamoThrottle(wiring.table())
