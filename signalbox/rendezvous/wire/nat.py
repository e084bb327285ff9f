"""How reachable a client or a proxy is behind its network address translation, and who can serve whom."""

from enum import StrEnum

from signalbox.errors import RejectedError


class InvalidNat(RejectedError):
    """Raised when a NAT type is none of the protocol's."""


class Nat(StrEnum):
    """A NAT type of the protocol."""

    UNKNOWN = "unknown"
    RESTRICTED = "restricted"
    UNRESTRICTED = "unrestricted"

    @classmethod
    def parse(cls, text: str) -> "Nat":
        """Return the type that a message names; no name means unknown. Raises `InvalidNat`."""
        if text and text not in tuple(cls):
            raise InvalidNat("invalid NAT type")
        return cls(text or cls.UNKNOWN)


def fitting_proxies(client: Nat) -> tuple[Nat, ...]:
    """Return the proxies that can serve a client, the ones to try first in front.

    An unrestricted client takes the restricted and unknown proxies, for these are of no use to any other.
    """
    if client is Nat.UNRESTRICTED:
        return (Nat.RESTRICTED, Nat.UNKNOWN, Nat.UNRESTRICTED)
    return (Nat.UNRESTRICTED,)


def fitting_clients(proxy: Nat) -> tuple[Nat, ...]:
    """Return the clients that a proxy can serve: the inverse of `fitting_proxies`, in no order."""
    return tuple(client for client in Nat if proxy in fitting_proxies(client))
