"""A client's offer, in the one form that all ways to the broker share."""

from dataclasses import dataclass

from signalbox.errors import RejectedError
from signalbox.rendezvous.wire.bridges import (
    DEFAULT_FINGERPRINT,
    BridgeList,
    Fingerprint,
    InvalidFingerprint,
    parse_fingerprint,
)
from signalbox.rendezvous.wire.gojson.codec import FieldType, Record, Struct, encode
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
    """Raised when an offer cannot be served; `text` is what the client is told."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True)
class Offer:
    """A client that asks for a proxy; the session description goes to the proxy as it came."""

    session_description: str
    nat: Nat
    fingerprint: Fingerprint

    @classmethod
    def parse(cls, body: bytes, bridges: BridgeList) -> "Offer":
        """Return the offer in a body that starts with a version line. Raises `OfferRejectedError`."""
        if len(body) > MAXIMUM_BODY_BYTES:  # a proxy reads no more than this, and a record of DynamoDB holds 400 KB
            raise OfferRejectedError(f"{len(body)} bytes are too many; at most {MAXIMUM_BODY_BYTES} are allowed")
        return _read(body, bridges)

    @classmethod
    def parse_legacy(cls, body: bytes, bridges: BridgeList, *, nat_header: str) -> "Offer":
        """Return the offer of a client that sends its bare session description. Raises `OfferRejectedError`."""
        return _read(offer_body(text_of(body), nat_header).encode(), bridges)


def is_legacy(body: bytes) -> bool:
    """Tell whether a body is a bare session description, the form before there were version lines."""
    return body.startswith(b"{")


def offer_body(session_description: str, nat: str = Nat.UNKNOWN, *, fingerprint: str = DEFAULT_FINGERPRINT) -> str:
    """Return the body that a client sends."""
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


def _checked(record: Record, bridges: BridgeList) -> Offer:
    """Return the offer that was read; the order of the checks is the original's."""
    session_description = record.text("offer")
    if not session_description:
        raise OfferRejectedError("no supplied offer")
    SessionDescription.parse(session_description)
    fingerprint = _fingerprint(record.text("fingerprint"))
    nat = Nat.parse(record.text("nat"))
    if bridges.relay_url(fingerprint) is None:
        raise OfferRejectedError("bridge with requested fingerprint is unknown to the broker")
    return Offer(session_description, nat, fingerprint)


def _fingerprint(text: str) -> Fingerprint:
    try:
        return parse_fingerprint(text or DEFAULT_FINGERPRINT)
    except InvalidFingerprint as problem:
        raise OfferRejectedError("cannot decode fingerprint") from problem
