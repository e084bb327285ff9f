"""Opens the session of a new connection, and signals the end of a closed one."""

from datetime import UTC, datetime
from functools import cache
from typing import Any

from lambdas.live import wiring
from signalbox.aws.live.sessions import DynamoConnectionRate
from signalbox.live.session.connection import PROTOCOL_HEADER, Refusal, protocol_refusal, rate_refusal
from signalbox.live.session.state import ConnectionId, Lost, opened
from signalbox.live.wamp.codec import SUBPROTOCOL

OK = 200


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return the response to `$connect`, with the subprotocol or a refusal, or to `$disconnect`."""
    context = event["requestContext"]
    connection = ConnectionId(context["connectionId"])
    if context["routeKey"] == "$disconnect":
        wiring.inbox().notify(connection, Lost(), request=context["requestId"])
        return {"statusCode": OK}
    headers = event.get("headers") or {}
    now = datetime.fromtimestamp(context["requestTimeEpoch"] / 1000, UTC)
    refusal = protocol_refusal(headers) or rate_refusal(_connection_rate().count(now=now))
    return _refused(refusal) if refusal else _accepted(connection, headers, now)


def _accepted(connection: ConnectionId, headers: dict[str, str], now: datetime) -> dict[str, Any]:
    user_agent = next((value for name, value in headers.items() if name.lower() == "user-agent"), "")
    wiring.sessions().open(opened(connection, now=now, user_agent=user_agent))
    wiring.timers().start(connection)
    return {"statusCode": OK, "headers": {PROTOCOL_HEADER: SUBPROTOCOL}}


def _refused(refusal: Refusal) -> dict[str, Any]:
    return {"statusCode": refusal.status, "body": refusal.reason}


@cache
def _connection_rate() -> DynamoConnectionRate:
    return DynamoConnectionRate(wiring.table())
