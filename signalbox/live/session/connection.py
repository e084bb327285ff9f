"""The rules for accepting a connection: WAMP in JSON or Arvados' dialect, and a limited connection rate."""

from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.live.wamp.batches import BATCHED_SUBPROTOCOL
from signalbox.live.wamp.codec import SUBPROTOCOL

PROTOCOL_HEADER = "Sec-WebSocket-Protocol"
TOKEN_PARAMETER = "api_token"  # noqa: S105 - the name of Arvados' query parameter
# Half of API Gateway's default quota of an account: when all clients of a stage reconnect at once, other APIs keep
# room, and sessions begin no faster than their table can store them.
MAXIMUM_PER_SECOND = 250
# A stranger's connections leave room for those of others, and for the frames of all in the inbox.
MAXIMUM_OF_NETWORK = 50
BAD_REQUEST, UNAUTHORIZED, NOT_FOUND, TOO_MANY_REQUESTS, UNAVAILABLE = 400, 401, 404, 429, 503


@dataclass(frozen=True, slots=True)
class Refusal:
    """The HTTP status and the text of a refused connection; `problem` is a word for the history, if it has one."""

    status: int
    reason: str
    problem: str = ""


TOO_MANY = Refusal(TOO_MANY_REQUESTS, "too many connections at once: connect again in some seconds")


def offered_subprotocols(headers: Mapping[str, str]) -> list[str]:
    """Return the subprotocols that a client offers; clients write their list with and without spaces."""
    values = (value for name, value in headers.items() if name.lower() == PROTOCOL_HEADER.lower())
    return [part.strip() for value in values for part in value.split(",")]


def chosen_subprotocol(headers: Mapping[str, str]) -> str | None:
    """Return the subprotocol of a connection, or None if the client offers no supported one.

    Batches are preferred: API Gateway charges for each WebSocket message.
    """
    offered = offered_subprotocols(headers)
    return next((one for one in (BATCHED_SUBPROTOCOL, SUBPROTOCOL) if one in offered), None)


def arvados_token(headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
    """Return the token of a client of Arvados, which offers no subprotocol; None for any other client."""
    return None if any(offered_subprotocols(headers)) else query.get(TOKEN_PARAMETER)


def protocol_refusal(headers: Mapping[str, str]) -> Refusal | None:
    """Return the refusal of a client that does not offer WAMP in JSON, or None.

    Binary serializations are impossible: API Gateway closes a connection that sends a binary frame.
    """
    if chosen_subprotocol(headers):
        return None
    return Refusal(BAD_REQUEST, f"offer the subprotocol {SUBPROTOCOL} or {BATCHED_SUBPROTOCOL}: no other is supported")
