"""The address of a client or proxy, its country, and the keyed hash that is stored in its place.

Addresses are read from the current request and never stored; only their `keyed_hash` is.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
# Returns the ISO 3166 code of the country of an address, or `??` if it is unknown.
CountryLookup = Callable[[str | None], str]

# Source: realclientip-go, the library that upstream uses; the third line keeps its error of 192.18 for 198.18.
_NOT_PUBLIC: tuple[IPv4Network | IPv6Network, ...] = tuple(
    ip_network(text)
    for text in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "0.0.0.0/8", "169.254.0.0/16"),
        *("192.0.0.0/24", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "192.88.99.0/24"),
        *("192.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4", "100.64.0.0/10"),
        *("::/128", "::1/128", "100::/64", "2001::/23", "2001:db8::/32", "2001::/32", "fc00::/7", "fe80::/10"),
        *("ff00::/8", "2002::/16"),
    )
)


def keyed_hash(text: str, *, key: bytes) -> str:
    """Return the first 16 hexadecimal characters of HMAC-SHA256; they identify a text for as long as the key exists."""
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:16]


def client_address(headers: Mapping[str, str], *, socket_address: str) -> str | None:
    """Return the probable address of the sender of a request, or None; header names must be in lower case.

    It is the left-most public address in `Forwarded`, else in `X-Forwarded-For`, else the socket's, public or not.
    Every sender can forge it: use it for statistics only. Source: upstream's common/util/util.go, GetClientIp.
    """
    forwarded = [_forwarded_for(element) for element in headers.get("forwarded", "").split(",")]
    for text in (*forwarded, *headers.get("x-forwarded-for", "").split(",")):
        address = _parsed(text.strip())
        if address is not None and _is_public(address):
            return str(address)
    address = _parsed(socket_address)
    return None if address is None else str(address)


def _forwarded_for(element: str) -> str:
    """Return the value of the first `for=` in an element of `Forwarded` (RFC 7239, section 4)."""
    for part in element.split(";"):
        name, separator, value = part.strip().partition("=")
        if separator and name.lower() == "for" and "=" not in value:
            return _unwrapped(value.strip(), '""')
    return ""


def _parsed(text: str) -> Address | None:
    host = _unwrapped(_without_port(text), "[]")
    # A zone has a meaning only on the sender's machine; upstream keeps it as part of the address.
    without_zone = host.rpartition("%")[0] or host
    try:
        address = ip_address(without_zone)
    except ValueError:  # unknown, obfuscated or malformed: no address to count
        return None
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return None if address.is_unspecified or "%" in without_zone else address


def _without_port(text: str) -> str:
    host, colon, _ = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    return host if colon and (is_bracketed or ":" not in host) else text


def _unwrapped(text: str, ends: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] + text[-1] == ends else text


def _is_public(address: Address) -> bool:
    return not any(address in network for network in _NOT_PUBLIC)
