"""The NAT types of clients and proxies, and their compatibility."""

from enum import StrEnum

from signalbox.errors import RejectedError


class InvalidNat(RejectedError):
    """Raised when a NAT type is not one of the protocol's."""


class Nat(StrEnum):
    """A NAT type of the protocol."""

    UNKNOWN = "unknown"
    RESTRICTED = "restricted"
    UNRESTRICTED = "unrestricted"

    @classmethod
    def parse(cls, text: str) -> "Nat":
        """Return the NAT type with a name; the empty name is `UNKNOWN`. Raises `InvalidNat`."""
        if text and text not in tuple(cls):
            raise InvalidNat("invalid NAT type")
        return cls(text or cls.UNKNOWN)


def compatible_proxies(client: Nat) -> tuple[Nat, ...]:
    """Return the NAT types of the proxies that can serve a client, most preferred first.

    An unrestricted client prefers restricted and unknown proxies, because no other client can use them.
    """
    if client is Nat.UNRESTRICTED:
        return (Nat.RESTRICTED, Nat.UNKNOWN, Nat.UNRESTRICTED)
    return (Nat.UNRESTRICTED,)
