"""Replies to clients: a proxy's answer or an error, in the current and the legacy form."""

from dataclasses import dataclass

from signalbox.rendezvous.wire.gojson.codec import FieldType, Struct, encode
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage

NO_PROXIES = "no snowflake proxies currently available"
TIMED_OUT = "timed out waiting for answer!"

_REPLY = Struct(
    package="messages",
    name="ClientPollResponse",
    fields={"answer": FieldType.TEXT, "error": FieldType.TEXT},
)
# HTTP status codes (RFC 9110)
_OK, _BAD_REQUEST, _SERVICE_UNAVAILABLE, _GATEWAY_TIMEOUT = 200, 400, 503, 504
_LEGACY_STATUS = {"": _OK, NO_PROXIES: _SERVICE_UNAVAILABLE, TIMED_OUT: _GATEWAY_TIMEOUT}


@dataclass(frozen=True, slots=True)
class ClientReply:
    """The broker's reply to an offer: an answer, or an error text."""

    answer: str = ""
    error: str = ""

    @classmethod
    def parse(cls, body: bytes) -> "ClientReply":
        """Return the reply in a body, parsed as a client does. Raises `InvalidMessage`."""
        record = _REPLY.decode(body)
        reply = cls(answer=record.text("answer"), error=record.text("error"))
        if reply == cls():
            raise InvalidMessage("received empty broker response")
        return reply


def answer_reply(answer: str) -> str:
    """Return the reply body with a proxy's answer."""
    return encode({"answer": answer})


def error_reply(text: str) -> str:
    """Return the reply body with an error text."""
    return encode({"error": text})


def legacy_status(reply: ClientReply) -> int:
    """Return the HTTP status of a reply to a client that sent only its session description; the body is the answer.

    Upstream closes the connection if the offer is invalid; this broker returns status 400.
    """
    return _LEGACY_STATUS.get(reply.error, _BAD_REQUEST)
