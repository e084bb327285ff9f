"""Client offers: the request body that SQS, HTTP and AMP clients share, parsed and written."""

from dataclasses import dataclass

from signalbox.rendezvous.wire.bridges import DEFAULT_FINGERPRINT, Bridges, Fingerprint, parse_fingerprint
from signalbox.rendezvous.wire.gojson.codec import FieldType, Struct, encode
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage, text_of
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.sdp import sdp_of

MAXIMUM_BODY_BYTES = 100_000
VERSION = b"1.0"

_OFFER = Struct(
    package="messages",
    name="ClientPollRequest",
    fields={"offer": FieldType.TEXT, "nat": FieldType.TEXT, "fingerprint": FieldType.TEXT},
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A client's request for a proxy.

    `session_description` is the JSON text that goes to the proxy unchanged; `sdp` is the SDP text inside it.
    `relay_url` is the address of the client's bridge.
    """

    session_description: str
    nat: Nat
    relay_url: str
    sdp: str

    @classmethod
    def parse(cls, body: bytes, bridges: Bridges) -> "Offer":
        """Return the offer in a body that starts with a version line. Raises `InvalidMessage`."""
        if len(body) > MAXIMUM_BODY_BYTES:  # a proxy reads at most this, and a DynamoDB item holds 400 KB
            raise InvalidMessage(f"{len(body)} bytes are too many; at most {MAXIMUM_BODY_BYTES} are allowed")
        return _read(body, bridges)

    @classmethod
    def parse_legacy(cls, body: bytes, bridges: Bridges, *, nat_header: str) -> "Offer":
        """Return the offer of a client that sends only its session description. Raises `InvalidMessage`."""
        return _read(offer_body(text_of(body), nat_header).encode(), bridges)


def is_legacy(body: bytes) -> bool:
    """Return whether a body is only a session description, the form from before version lines."""
    return body.startswith(b"{")


def offer_body(session_description: str, nat: str = Nat.UNKNOWN, *, fingerprint: str = DEFAULT_FINGERPRINT) -> str:
    """Return the request body of an offer."""
    message = {"offer": session_description, "nat": nat, "fingerprint": fingerprint}
    return f"{VERSION.decode()}\n{encode(message)}"


def _read(body: bytes, bridges: Bridges) -> Offer:
    """Return the offer in a body; the checks have upstream's order."""
    version, newline, document = body.partition(b"\n")
    if not newline or version != VERSION:
        raise InvalidMessage("unsupported message version")
    record = _OFFER.decode(document)
    session_description = record.text("offer")
    if not session_description:
        raise InvalidMessage("no supplied offer")
    sdp = sdp_of(session_description)
    fingerprint = _fingerprint(record.text("fingerprint"))
    nat = Nat.parse(record.text("nat"))
    if fingerprint not in bridges:
        raise InvalidMessage("bridge with requested fingerprint is unknown to the broker")
    return Offer(session_description, nat, bridges[fingerprint], sdp)


def _fingerprint(text: str) -> Fingerprint:
    try:
        return parse_fingerprint(text or DEFAULT_FINGERPRINT)
    except InvalidMessage as problem:
        raise InvalidMessage("cannot decode fingerprint") from problem
