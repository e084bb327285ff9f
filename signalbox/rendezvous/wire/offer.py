"""Client offers: the request body that SQS, HTTP and AMP clients share, parsed and written."""

from dataclasses import dataclass

from signalbox.errors import RejectedError
from signalbox.rendezvous.wire.bridges import (
    DEFAULT_FINGERPRINT,
    BridgeList,
    Fingerprint,
    InvalidFingerprint,
    parse_fingerprint,
)
from signalbox.rendezvous.wire.gojson.codec import DecodedStruct, FieldType, Struct, encode
from signalbox.rendezvous.wire.gojson.scanner import InvalidJson, text_of
from signalbox.rendezvous.wire.nat import InvalidNat, Nat
from signalbox.rendezvous.wire.sdp import InvalidSessionDescription, SessionDescription

MAXIMUM_BODY_BYTES = 100_000
VERSION = b"1.0"

_OFFER = Struct(
    package="messages",
    name="ClientPollRequest",
    fields={"offer": FieldType.TEXT, "nat": FieldType.TEXT, "fingerprint": FieldType.TEXT},
)


class OfferRejectedError(RejectedError):
    """Raised when an offer cannot be served; `text` is the error in the client's reply."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True)
class Offer:
    """A client's request for a proxy.

    `session_description` is the JSON text that goes to the proxy unchanged; `sdp` is the SDP text inside it.
    """

    session_description: str
    nat: Nat
    fingerprint: Fingerprint
    sdp: str

    @classmethod
    def parse(cls, body: bytes, bridges: BridgeList) -> "Offer":
        """Return the offer in a body that starts with a version line. Raises `OfferRejectedError`."""
        if len(body) > MAXIMUM_BODY_BYTES:  # a proxy reads at most this, and a DynamoDB item holds 400 KB
            raise OfferRejectedError(f"{len(body)} bytes are too many; at most {MAXIMUM_BODY_BYTES} are allowed")
        return _read(body, bridges)

    @classmethod
    def parse_legacy(cls, body: bytes, bridges: BridgeList, *, nat_header: str) -> "Offer":
        """Return the offer of a client that sends only its session description. Raises `OfferRejectedError`."""
        return _read(offer_body(text_of(body), nat_header).encode(), bridges)


def is_legacy(body: bytes) -> bool:
    """Return whether a body is only a session description, the form from before version lines."""
    return body.startswith(b"{")


def offer_body(session_description: str, nat: str = Nat.UNKNOWN, *, fingerprint: str = DEFAULT_FINGERPRINT) -> str:
    """Return the request body of an offer."""
    message = {"offer": session_description, "nat": nat, "fingerprint": fingerprint}
    return f"{VERSION.decode()}\n{encode(message)}"


def _read(body: bytes, bridges: BridgeList) -> Offer:
    version, newline, document = body.partition(b"\n")
    if not newline or version != VERSION:
        raise OfferRejectedError("unsupported message version")
    try:
        return _checked(_OFFER.decode(document), bridges)
    except (InvalidJson, InvalidSessionDescription, InvalidNat) as problem:
        raise OfferRejectedError(str(problem)) from problem


def _checked(record: DecodedStruct, bridges: BridgeList) -> Offer:
    """Return the offer in a decoded body; the checks have upstream's order."""
    session_description = record.text("offer")
    if not session_description:
        raise OfferRejectedError("no supplied offer")
    sdp = SessionDescription.parse(session_description).sdp
    fingerprint = _fingerprint(record.text("fingerprint"))
    nat = Nat.parse(record.text("nat"))
    if bridges.relay_url(fingerprint) is None:
        raise OfferRejectedError("bridge with requested fingerprint is unknown to the broker")
    return Offer(session_description, nat, fingerprint, sdp)


def _fingerprint(text: str) -> Fingerprint:
    try:
        return parse_fingerprint(text or DEFAULT_FINGERPRINT)
    except InvalidFingerprint as problem:
        raise OfferRejectedError("cannot decode fingerprint") from problem
