"""The NAT types of clients and proxies."""

from enum import StrEnum

from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage


class Nat(StrEnum):
    """A NAT type of the protocol."""

    UNKNOWN = "unknown"
    RESTRICTED = "restricted"
    UNRESTRICTED = "unrestricted"

    @classmethod
    def parse(cls, text: str) -> "Nat":
        """Return the NAT type with a name; the empty name is `UNKNOWN`. Raises `InvalidMessage`."""
        if text and text not in tuple(cls):
            raise InvalidMessage("invalid NAT type")
        return cls(text or cls.UNKNOWN)
