"""What a client gets for its offer."""

from dataclasses import dataclass

from signalbox.errors import RejectedError
from signalbox.rendezvous.wire.gojson.codec import FieldType, Struct, encode
from signalbox.rendezvous.wire.gojson.scanner import InvalidJson

NO_PROXIES = "no snowflake proxies currently available"
TIMED_OUT = "timed out waiting for answer!"

_REPLY = Struct(
    package="messages",
    name="ClientPollResponse",
    fields={"answer": FieldType.TEXT, "error": FieldType.TEXT},
)
# HTTP status codes (RFC 9110)
_OK, _BAD_REQUEST, _SERVICE_UNAVAILABLE, _GATEWAY_TIMEOUT = 200, 400, 503, 504
_LEGACY_STATUS = {NO_PROXIES: _SERVICE_UNAVAILABLE, TIMED_OUT: _GATEWAY_TIMEOUT}


class InvalidReply(RejectedError):
    """Raised when what a client got is not a broker's reply."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or the reason why there is none."""

    answer: str = ""
    error: str = ""

    @classmethod
    def parse(cls, body: bytes) -> "Reply":
        """Return the reply as a client reads it. Raises `InvalidReply`."""
        try:
            record = _REPLY.decode(body)
        except InvalidJson as problem:
            raise InvalidReply(str(problem)) from problem
        reply = cls(answer=record.text("answer"), error=record.text("error"))
        if reply == cls():
            raise InvalidReply("received empty broker response")
        return reply


@dataclass(frozen=True, slots=True)
class LegacyReply:
    """What a client gets that sent its bare session description."""

    status: int
    body: str = ""


def answer_reply(answer: str) -> str:
    """Return the body that carries a proxy's answer to a client."""
    return encode({"answer": answer})


def error_reply(text: str) -> str:
    """Return the body that tells a client why there is no answer."""
    return encode({"error": text})


def legacy_reply(reply: Reply) -> LegacyReply:
    """Return a reply in the older form: the bare answer, or a status and no body.

    The original drops the connection when the offer itself is at fault; here that is a bad request.
    """
    if reply.error:
        return LegacyReply(_LEGACY_STATUS.get(reply.error, _BAD_REQUEST))
    return LegacyReply(_OK, reply.answer)
