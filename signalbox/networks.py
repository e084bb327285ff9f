"""The network of a client's address: the unit by which strangers share what all of them use."""

import zlib
from ipaddress import IPv6Address, ip_address, ip_network

# The smallest network of a customer, with 2^64 addresses.
IPV6_PREFIX = 64


def network_number(address: str) -> int | None:
    """Return a number of the network of a public address, or None: other addresses are of the local stage."""
    try:
        found = ip_address(address)
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    if not found.is_global:
        return None
    prefix = IPV6_PREFIX if isinstance(found, IPv6Address) else found.max_prefixlen
    return zlib.crc32(ip_network((found, prefix), strict=False).network_address.packed)
