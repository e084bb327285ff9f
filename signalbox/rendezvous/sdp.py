"""Session descriptions, as far as a broker looks into them."""

from dataclasses import dataclass
from enum import StrEnum

from signalbox.errors import RejectedError
from signalbox.rendezvous.golang import decode_map
from signalbox.rendezvous.scanner import InvalidJson, Kind, Value


class InvalidSessionDescription(RejectedError):
    """Raised when a text is not a session description; its text says why, without showing any of it."""


class DescriptionType(StrEnum):
    """What a session description is for."""

    OFFER = "offer"
    PRANSWER = "pranswer"
    ANSWER = "answer"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class SessionDescription:
    """A WebRTC session description."""

    type: DescriptionType
    sdp: str

    @classmethod
    def parse(cls, text: str) -> "SessionDescription":
        """Return the description in a JSON text. Raises `InvalidSessionDescription`."""
        try:
            members = decode_map(text.encode(errors="surrogatepass"))
        except InvalidJson as problem:
            raise _malformed(str(problem)) from problem
        for name in ("type", "sdp"):
            if name not in members:
                raise _malformed(f"cannot deserialize SessionDescription without {name} field")
        kind = _text(members["type"], "invalid SDP type")
        sdp = _text(members["sdp"], "invalid SDP")
        if kind not in tuple(DescriptionType):
            raise _malformed("Unknown SDP type")
        return cls(DescriptionType(kind), sdp)


def has_candidate(body: bytes) -> bool:
    """Tell whether a body names at least one address to connect to."""
    return b"a=candidate" in body


def _text(value: Value, problem: str) -> str:
    if value.kind is not Kind.STRING:
        raise _malformed(problem)
    return value.text


def _malformed(why: str) -> InvalidSessionDescription:
    return InvalidSessionDescription(f"malformed session description: {why}")
