"""WebRTC session descriptions: validation, and the client address in their ICE candidates."""

import ipaddress
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from signalbox.rendezvous.wire.gojson.codec import decode_map, encode
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage, JsonKind, JsonValue

TYPES = ("offer", "pranswer", "answer", "rollback")
# RFC 8445, section 5.1.2.2: the nearer the candidate to the client, the better its address shows the country.
_PREFERENCE = {"host": 126, "prflx": 110, "srflx": 100, "relay": 0}
_PRIORITY_DIGITS = 10

# Each poll reads the newest records of its pool, and a record of 2 KB is two write units: strangers must not make them
# large. 30 candidates have 1.1 KB.
MAXIMUM_COMPRESSED_BYTES = 1_200
# In a message, where `<` has six bytes: a proxy reads 100,000 bytes, and a client's queue takes twice as many.
MAXIMUM_WRITTEN_BYTES = 99_000


def sdp_of(text: str) -> str:
    """Return the SDP text in a WebRTC session description in JSON. Raises `InvalidMessage`, which quotes none of it."""
    encoded = text.encode(errors="surrogatepass")
    try:
        members = decode_map(encoded)
    except InvalidMessage as problem:
        raise _malformed(str(problem)) from problem
    for name in ("type", "sdp"):
        if name not in members:
            raise _malformed(f"cannot deserialize SessionDescription without {name} field")
    kind = _text(members["type"], "invalid SDP type")
    sdp = _text(members["sdp"], "invalid SDP")
    if kind not in TYPES:
        raise _malformed("Unknown SDP type")
    if (size := len(zlib.compress(encoded))) > MAXIMUM_COMPRESSED_BYTES:
        raise _malformed(f"{size} bytes compressed; at most {MAXIMUM_COMPRESSED_BYTES} are allowed")
    if (size := len(encode({"": text}).encode())) > MAXIMUM_WRITTEN_BYTES:
        raise _malformed(f"{size} bytes in a message; at most {MAXIMUM_WRITTEN_BYTES} are allowed")
    return sdp


@dataclass(frozen=True, slots=True, order=True)
class _Candidate:
    preference: int
    priority: int
    address: str = field(compare=False)


def best_candidate_address(sdp: str) -> str | None:
    """Return the address of the best ICE candidate, which may be private, or None without a candidate."""
    # Upstream sorts in ascending order and reverses the list: of two equal candidates the later one wins.
    best = max(reversed(list(_candidates(sdp))), default=None)
    return best.address if best else None


def _candidates(sdp: str) -> Iterator[_Candidate]:
    """Yield the candidates with an address; attributes before the first `m=` line belong to the session."""
    in_media = False
    for line in sdp.replace("\r", "").split("\n"):
        in_media = in_media or line.startswith("m=")
        if in_media and line.startswith("a=candidate:"):
            yield from _candidate(line.removeprefix("a=candidate:"))


def _candidate(attribute: str) -> Iterator[_Candidate]:
    match attribute.split(" "):
        case [_, _, transport, priority, host, _, "typ", kind, *_] if kind in _PREFERENCE:
            address = _address(host)
            if address and _is_transport(transport) and _is_priority(priority):
                yield _Candidate(_PREFERENCE[kind], int(priority), address)


def _address(host: str) -> str | None:
    """Return an address in canonical form, or None for a name (browsers replace host addresses by `.local` names)."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if address.version == 6 else None  # noqa: PLR2004 (an IP version is no magic)
    return str(mapped or address)


def _is_transport(text: str) -> bool:
    return text.lower().startswith(("udp", "tcp"))


def _is_priority(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _PRIORITY_DIGITS


def _text(value: JsonValue, problem: str) -> str:
    if value.kind is not JsonKind.STRING:
        raise _malformed(problem)
    return value.text


def _malformed(why: str) -> InvalidMessage:
    return InvalidMessage(f"malformed session description: {why}")
