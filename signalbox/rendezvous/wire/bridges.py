"""The Tor bridges that proxies relay to, identified by fingerprint."""

import string
from collections.abc import Mapping
from types import MappingProxyType
from typing import NewType

from signalbox.errors import RejectedError
from signalbox.rendezvous.wire.gojson.codec import FieldType, Struct
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage

Fingerprint = NewType("Fingerprint", str)  # upper-case hexadecimal
Bridges = Mapping[Fingerprint, str]  # the WebSocket addresses at which proxies reach them
# The bridge of clients that send no fingerprint.
DEFAULT_FINGERPRINT = Fingerprint("2B280B23E1107BB62ABFC40DDCC8824814F80A72")
DEFAULT_BRIDGES: Bridges = MappingProxyType({DEFAULT_FINGERPRINT: "wss://snowflake.torproject.net/"})

FINGERPRINT_SIZES_BYTES = (20, 32)

_BRIDGE = Struct(
    package="main",
    name="BridgeInfo",
    fields={
        "displayName": FieldType.TEXT,
        "webSocketAddress": FieldType.TEXT,
        "fingerprint": FieldType.TEXT,
    },
    allows_unknown_fields=False,
)


class InvalidBridgeList(RejectedError):
    """Raised when a bridge list has invalid lines; the text names each of them with its problem."""


def parse_fingerprint(text: str) -> Fingerprint:
    """Return a fingerprint in upper case. Raises `InvalidMessage`."""
    # `bytes.fromhex` would accept spaces.
    if len(text) not in {2 * size for size in FINGERPRINT_SIZES_BYTES} or not set(text) <= set(string.hexdigits):
        raise InvalidMessage("bridge fingerprint invalid")
    return Fingerprint(text.upper())


def parse_bridges(text: str) -> Bridges:
    """Return the bridges of a text with one JSON object in each line. Raises `InvalidBridgeList`."""
    bridges: dict[Fingerprint, str] = {}
    problems = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
        try:
            record = _BRIDGE.decode(line.encode(errors="surrogatepass"))
            bridges[parse_fingerprint(record.text("fingerprint"))] = record.text("webSocketAddress")
        except InvalidMessage as problem:
            problems.append(f"line {number}: {problem}")
    if problems:
        raise InvalidBridgeList("; ".join(problems))
    return bridges
