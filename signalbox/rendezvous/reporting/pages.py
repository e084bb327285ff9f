"""The broker's small pages and its response headers, as in upstream's broker/http.go and ipc.go."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from signalbox.rendezvous.model.pace import ProxyKind
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import KNOWN_TYPES, UNKNOWN_TYPE

TEXT = "text/plain; charset=utf-8"  # of every body, including JSON, except AMP and Prometheus pages
PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

# On /proxy, /answer, /client, /amp/client/, /debug and /metrics, whatever the status and method; not on the others.
CROSS_ORIGIN: Mapping[str, str] = MappingProxyType(
    {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "Origin, X-Session-ID"}
)
NOT_FOUND_HEADERS: Mapping[str, str] = MappingProxyType({"Content-Type": TEXT, "X-Content-Type-Options": "nosniff"})

ROBOTS = "User-agent: *\nDisallow: /\n"
NOT_FOUND = "404 page not found\n"


def debug_page(available: Mapping[ProxyKind, int]) -> str:
    """Return the body of /debug for the number of proxies by kind; types without a proxy are left out."""
    nats: Counter[Nat] = Counter()
    for kind, count in available.items():
        nats[kind.nat] += count
    lines = [
        f"current snowflakes available: {nats.total()}",
        *(f"\t{name} proxies: {count}" for name, count in _by_type(available)),
        "NAT Types available:",
        *(f"\t{nat}: {nats[nat]}" for nat in (Nat.RESTRICTED, Nat.UNRESTRICTED, Nat.UNKNOWN)),
    ]
    return "\n".join(lines)


def _by_type(available: Mapping[ProxyKind, int]) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for kind, count in available.items():
        counts[kind.proxy_type] += count
    # Upstream prints the known types in random order.
    known = [(name, counts[name]) for name in KNOWN_TYPES if counts[name]]
    return [*known, (UNKNOWN_TYPE, counts[UNKNOWN_TYPE])]
