"""Opens the session of a new connection, and signals the end of a closed one."""

from datetime import UTC, datetime
from functools import cache
from typing import Any

from lambdas.live import wiring
from lambdas.shared import instance
from signalbox.aws.live.sessions import DynamoConnectionRate
from signalbox.live.model.state import ConnectionId, Lost, Session, opened
from signalbox.live.session.connection import (
    MAXIMUM_OF_NETWORK,
    MAXIMUM_PER_SECOND,
    PROTOCOL_HEADER,
    TOO_MANY,
    Refusal,
    arvados_token,
    chosen_subprotocol,
    protocol_refusal,
)
from signalbox.live.wamp.batches import BATCHED_SUBPROTOCOL
from signalbox.networks import network_number, stored_group

OK = 200
MAXIMUM_USER_AGENT = 200  # characters that the record of a session has


def handler(event: dict[str, Any], lambda_context: object) -> dict[str, Any]:
    """Return the response to `$connect`, with the subprotocol or a refusal, or to `$disconnect`."""
    instance.begin(lambda_context)
    context = event["requestContext"]
    connection = ConnectionId(context["connectionId"])
    if context["routeKey"] == "$disconnect":
        wiring.inbox().notify(connection, Lost(), request=context["requestId"])
        return {"statusCode": OK}
    headers = event.get("headers") or {}
    now = datetime.fromtimestamp(context["requestTimeEpoch"] / 1000, UTC)
    token = arvados_token(headers, event.get("queryStringParameters") or {})
    refusal = None if token else protocol_refusal(headers)
    network = network_number(context["identity"]["sourceIp"])
    if refusal or not _is_counted(now, network):
        return _refused(refusal or TOO_MANY)
    user_agent = next((value for name, value in headers.items() if name.lower() == "user-agent"), "")
    subprotocol = chosen_subprotocol(headers)
    session = opened(
        connection,
        now=now,
        user_agent=user_agent[:MAXIMUM_USER_AGENT],
        is_batched=subprotocol == BATCHED_SUBPROTOCOL,
        network=stored_group(network, now.date()),
    )
    return _admitted(session, token, context["requestId"]) if token else _accepted(session, subprotocol)


def _accepted(session: Session, subprotocol: str | None) -> dict[str, Any]:
    wiring.sessions().open(session)
    wiring.timers().start(session.connection)
    return {"statusCode": OK, "headers": {PROTOCOL_HEADER: subprotocol}}


def _admitted(session: Session, token: str, request: str) -> dict[str, Any]:
    from lambdas.live import arvados  # noqa: PLC0415 - most connections use WAMP, and need not wait for its import

    refusal = arvados.admitted(session, token, request=request)
    return _refused(refusal) if refusal else {"statusCode": OK}


def _refused(refusal: Refusal) -> dict[str, Any]:
    return {"statusCode": refusal.status, "body": refusal.reason}


def _is_counted(now: datetime, network: int | None) -> bool:
    limits = {"most": MAXIMUM_PER_SECOND, "most_of_network": MAXIMUM_OF_NETWORK}
    return _connection_rate().count(now=now, network=network, **limits)


@cache
def _connection_rate() -> DynamoConnectionRate:
    return DynamoConnectionRate(wiring.table())
