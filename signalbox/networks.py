"""The network of a client's address: the unit by which strangers share what all of them use."""

import zlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

# The network that a business gets (RIPE-690), that a tunnel broker gives for nothing, and that each address of IPv4 has
# in 6to4; 256 homes may share one.
IPV6_PREFIX = 48
STORED_GROUPS = 256
# The costly requests of a network that a function instance serves, in such a time.
MOST_REQUESTS, COUNTED_FOR = 3, timedelta(seconds=10)


def network_number(address: str) -> int | None:
    """Return a number of the network of an address, or None for loopback, a local stage's, which no limit bounds."""
    try:
        found = ip_address(address)
    except ValueError:
        return 0
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    if found.is_loopback:  # not `is_private`, which has other addresses in each version of Python
        return None
    prefix = IPV6_PREFIX if isinstance(found, IPv6Address) else found.max_prefixlen
    return zlib.crc32(ip_network((found, prefix), strict=False).network_address.packed)


def stored_group(network: int | None, day: date) -> int | None:
    """Return a day's group of a network, one of 256: a number from which no address can be found, unlike the CRC."""
    return None if network is None else zlib.crc32(f"{day} {network}".encode()) % STORED_GROUPS


@dataclass(slots=True)
class CostlyRequests:
    """The costly requests of each network at a function instance, since a time."""

    since: datetime | None = None
    of_network: Counter[int | None] = field(default_factory=Counter)

    def are_over(self, network: int | None, *, now: datetime) -> bool:
        """Return whether a network has made too many; those of `COUNTED_FOR` are counted together."""
        if self.since is None or now - self.since >= COUNTED_FOR:
            self.since = now
            self.of_network.clear()
        return network is not None and self.of_network[network] >= MOST_REQUESTS
