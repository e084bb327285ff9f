"""The Tor bridges that proxies relay to, identified by fingerprint."""

import string
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NewType

from signalbox.errors import RejectedError
from signalbox.rendezvous.wire.gojson.codec import FieldType, Struct
from signalbox.rendezvous.wire.gojson.scanner import InvalidJson

Fingerprint = NewType("Fingerprint", str)  # upper-case hexadecimal

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


class InvalidFingerprint(RejectedError):
    """Raised when a fingerprint is not 20 or 32 bytes in hexadecimal."""


class InvalidBridgeList(RejectedError):
    """Raised when a bridge list has invalid lines; the text names each of them with its problem."""


def parse_fingerprint(text: str) -> Fingerprint:
    """Return a fingerprint in upper case. Raises `InvalidFingerprint`."""
    # `bytes.fromhex` would accept spaces.
    if len(text) not in {2 * size for size in FINGERPRINT_SIZES_BYTES} or not set(text) <= set(string.hexdigits):
        raise InvalidFingerprint("bridge fingerprint invalid")
    return Fingerprint(text.upper())


@dataclass(frozen=True, slots=True)
class Bridge:
    """A bridge and the WebSocket address at which proxies reach it."""

    display_name: str
    web_socket_address: str
    fingerprint: Fingerprint

    @classmethod
    def parse(cls, line: str) -> "Bridge":
        """Return the bridge in one line of a bridge list. Raises `InvalidJson` or `InvalidFingerprint`."""
        record = _BRIDGE.decode(line.encode(errors="surrogatepass"))
        return cls(
            display_name=record.text("displayName"),
            web_socket_address=record.text("webSocketAddress"),
            fingerprint=parse_fingerprint(record.text("fingerprint")),
        )


@dataclass(frozen=True, slots=True)
class BridgeList:
    """The bridges of a broker, by fingerprint."""

    bridges: Mapping[Fingerprint, Bridge]

    @classmethod
    def parse(cls, text: str) -> "BridgeList":
        """Return the bridges of a text with one JSON object in each line. Raises `InvalidBridgeList`."""
        bridges: dict[Fingerprint, Bridge] = {}
        problems = []
        for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
            try:
                bridge = Bridge.parse(line)
            except (InvalidJson, InvalidFingerprint) as problem:
                problems.append(f"line {number}: {problem}")
                continue
            bridges[bridge.fingerprint] = bridge
        if problems:
            raise InvalidBridgeList("; ".join(problems))
        return cls(MappingProxyType(bridges))

    def relay_url(self, fingerprint: Fingerprint) -> str | None:
        """Return the WebSocket address of a bridge, or None if the list does not contain it."""
        bridge = self.bridges.get(fingerprint)
        return bridge.web_socket_address if bridge else None


# The bridge of clients that send no fingerprint.
DEFAULT_FINGERPRINT = Fingerprint("2B280B23E1107BB62ABFC40DDCC8824814F80A72")
DEFAULT_BRIDGES = BridgeList(
    MappingProxyType(
        {DEFAULT_FINGERPRINT: Bridge("default", "wss://snowflake.torproject.net/", DEFAULT_FINGERPRINT)},
    ),
)
