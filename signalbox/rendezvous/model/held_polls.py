"""Held polls: the proxies that wait right now, and the order in which offers reserve them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from zlib import crc32

from signalbox.rendezvous.model.states import ClientId, ProxySessionId
from signalbox.rendezvous.wire.nat import Nat, compatible_proxies

NETWORKS = 5


@dataclass(frozen=True, slots=True)
class HeldPoll:
    """A poll that is held open in a numbered slot until `until`; `offer` names the client of its reserved offer."""

    slot: int
    sid: ProxySessionId
    nat: Nat
    proxy_type: str
    clients: int
    since: datetime
    until: datetime
    offer: ClientId | None = None


def ranked_polls(held: Iterable[HeldPoll], *, client_nat: Nat, client_id: ClientId, now: datetime) -> list[HeldPoll]:
    """Return the free held polls that can serve a client, best first.

    The order is upstream's (broker/ipc.go, broker/snowflake-heap.go): by pool, then by fewest clients. Ties are broken
    by a hash of client and proxy, so that simultaneous offers do not all try to reserve the same poll.
    """
    pools = compatible_proxies(client_nat)
    free = [h for h in held if h.offer is None and h.until > now and h.nat in pools]
    return sorted(free, key=lambda h: (_pool_rank(h.nat, pools), h.clients, crc32(f"{client_id} {h.sid}".encode())))


def _pool_rank(nat: Nat, pools: tuple[Nat, ...]) -> int:
    # Upstream keeps restricted and unknown proxies in one heap, so they have the same rank.
    return 1 if nat is Nat.UNRESTRICTED and len(pools) > 1 else 0


def has_recent_proxy(last_polls: Mapping[Nat, datetime], *, client_nat: Nat, now: datetime, recency: timedelta) -> bool:
    """Return whether a compatible proxy polled within `recency`, so that waiting for the next poll makes sense."""
    return any(now - last_polls[nat] <= recency for nat in compatible_proxies(client_nat) if nat in last_polls)


def candidate_slots(limit: int, *, random_bits: int, network: int | None, tries: int = 2) -> list[int]:
    """Return at most `tries` slot numbers below `limit`, so that a poll need not test every slot.

    The polls of a network have a fifth of the slots, so that one stranger does not occupy all.
    """
    share = limit if network is None else -(-limit // NETWORKS)
    first = 0 if network is None else network
    return [(first + (random_bits + step) % share) % limit for step in range(min(tries, share))]
