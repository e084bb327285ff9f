"""Whether a connection may begin: it must speak WAMP in JSON, and not come in a storm."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from signalbox.live.wamp.codec import SUBPROTOCOL

PROTOCOL_HEADER = "Sec-WebSocket-Protocol"
# Half of what API Gateway lets an account have by default, so that a stage whose clients all come back at once leaves
# room for others, and its sessions begin no faster than their table takes them.
MAXIMUM_PER_SECOND = 250


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a connection may not begin, as the client is told."""

    status: HTTPStatus
    reason: str


def offered(headers: Mapping[str, str]) -> list[str]:
    """Return the subprotocols that a client offers; some put a space behind the comma, and some do not."""
    values = (value for name, value in headers.items() if name.lower() == PROTOCOL_HEADER.lower())
    return [part.strip() for value in values for part in value.split(",")]


def protocol_refusal(headers: Mapping[str, str]) -> Refusal | None:
    """Return why no session could begin, or None. Of binary ones API Gateway closes the connection."""
    if SUBPROTOCOL in offered(headers):
        return None
    return Refusal(HTTPStatus.BAD_REQUEST, f"offer the subprotocol {SUBPROTOCOL}: nothing else is spoken here")


def storm_refusal(connections_this_second: int) -> Refusal | None:
    """Return why a connection has to come back later, or None."""
    if connections_this_second <= MAXIMUM_PER_SECOND:
        return None
    return Refusal(HTTPStatus.TOO_MANY_REQUESTS, "too many connections at once: come back in some seconds")
