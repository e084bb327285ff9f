"""Held polls: the proxies that wait right now, and which of them an offer is shown to first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from zlib import crc32

from signalbox.rendezvous.rules.states import ClientId, ProxySessionId
from signalbox.rendezvous.wire.nat import Nat, fitting_proxies


@dataclass(frozen=True, slots=True)
class HeldPoll:
    """A poll that is held open in one of the numbered slots until `until`; `offer` is what it was shown."""

    slot: int
    sid: ProxySessionId
    nat: Nat
    proxy_type: str
    clients: int
    since: datetime
    until: datetime
    offer: ClientId | None = None


def preferred(held: Iterable[HeldPoll], *, client_nat: Nat, client_id: ClientId, now: datetime) -> list[HeldPoll]:
    """Return the free held polls that can serve a client, best first.

    Upstream's order (broker/ipc.go, broker/snowflake-heap.go): by pool, then fewest clients. Among equals each client
    has an order of its own: offers that come together would all reach for the same poll, and all but one in vain.
    """
    pools = fitting_proxies(client_nat)
    free = [h for h in held if h.offer is None and h.until > now and h.nat in pools]
    return sorted(free, key=lambda h: (_pool_rank(h.nat, pools), h.clients, crc32(f"{client_id} {h.sid}".encode())))


def _pool_rank(nat: Nat, pools: tuple[Nat, ...]) -> int:
    # Restricted and unknown proxies share one heap upstream, so they share one rank.
    return 1 if nat is Nat.UNRESTRICTED and len(pools) > 1 else 0


def has_prospect(last_polls: Mapping[Nat, datetime], *, client_nat: Nat, now: datetime, recency: timedelta) -> bool:
    """Say whether a proxy that fits this client has polled lately, so that waiting for the next one makes sense."""
    return any(now - last_polls[nat] <= recency for nat in fitting_proxies(client_nat) if nat in last_polls)


def slots_to_try(limit: int, *, random_bits: int, tries: int = 2) -> list[int]:
    """Return some slot numbers below `limit` to look for a free one in, without asking about all of them."""
    return [(random_bits + step) % limit for step in range(min(tries, limit))]
