"""The peers of a stage: the stages of other regions with which it shares its proxies, and whether they respond."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from signalbox.parallel import ParallelMap, serial_map
from signalbox.rendezvous.rules.held_polls import has_recent_proxy
from signalbox.rendezvous.rules.states import Rendezvous
from signalbox.rendezvous.wire.nat import Nat

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import Announcements, Offers, ProxyPresence

# A peer that failed is not called for this long, so that a region that is away costs one time-out and not one an offer.
REST = timedelta(seconds=30)
# The last polls of a peer are read again after this time.
PRESENCE_TIME = timedelta(seconds=5)

Value = TypeVar("Value")


def never(_error: Exception) -> bool:
    """Return that no error passes."""
    return False


@dataclass(slots=True)
class Breaker:
    """Stops calls to a peer for `REST` after a failure; then one call tries again."""

    closed_until: datetime | None = None

    def admits(self, now: datetime) -> bool:
        """Return whether the peer may be called; after a rest, only the first caller may."""
        if self.closed_until is None:
            return True
        if now < self.closed_until:
            return False
        self.closed_until = now + REST
        return True

    def rests(self, now: datetime) -> bool:
        """Return whether calls are stopped, without taking the one that tries again."""
        return self.closed_until is not None and now < self.closed_until

    def record(self, now: datetime, *, succeeded: bool) -> None:
        """Record the outcome of a call."""
        self.closed_until = None if succeeded else now + REST


@dataclass(slots=True)
class Peer:
    """The stage of another region: its offers, the announcements that it receives, and the polls of its proxies."""

    region: str
    offers: "Offers"
    announcements: "Announcements"
    presence: "ProxyPresence"
    breaker: Breaker = field(default_factory=Breaker)
    last_polls: Mapping[Nat, datetime] = field(default_factory=dict)
    read_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Peers:
    """The peers of a stage; a call to one ends with an outcome or, if it fails, with nothing and a rest.

    `failures` are the exceptions of a failed call, which `report` receives with the region. A call is repeated once at
    once if `passes` returns True for its exception: the peer responds. Threads that share one instance pass a `lock`.
    """

    region: str
    """The stage's own region."""
    peers: Sequence[Peer]
    clock: "Clock"
    recency: timedelta
    failures: tuple[type[Exception], ...]
    report: Callable[[str, Exception], None]
    passes: Callable[[Exception], bool] = never
    parallel_map: ParallelMap = serial_map
    lock: AbstractContextManager[object] = field(default_factory=nullcontext)

    def of(self, region: str) -> Peer | None:
        """Return the peer of a region, or None if there is none."""
        return next((peer for peer in self.peers if peer.region == region), None)

    def responding(self) -> list[Peer]:
        """Return the peers whose calls are not stopped."""
        now = self.clock.now()
        return [peer for peer in self.peers if not peer.breaker.rests(now)]

    def attempt(self, peer: Peer, call: Callable[[], Value]) -> Value | None:
        """Return the result of a call to a peer, or None if it failed or the peer rests."""
        if not peer.breaker.admits(self.clock.now()):
            return None
        try:
            result = self._result(call)
        except self.failures as error:
            peer.breaker.record(self.clock.now(), succeeded=False)
            self.report(peer.region, error)
            return None
        peer.breaker.record(self.clock.now(), succeeded=True)
        return result

    def _result(self, call: Callable[[], Value]) -> Value:
        try:
            return call()
        except self.failures as error:
            if not self.passes(error):
                raise
        return call()

    def announce(self, record: Rendezvous) -> None:
        """Announce an open offer of this region to every peer with a compatible proxy."""
        list(self.parallel_map(lambda peer: self._announce(peer, record), self.with_proxies(record.nat)))

    def _announce(self, peer: Peer, record: Rendezvous) -> None:
        self.attempt(peer, lambda: peer.announcements.announce(record, home=self.region))

    def with_proxies(self, nat: Nat) -> list[Peer]:
        """Return the peers where a proxy that is compatible with a client of this NAT type polled recently."""
        with self.lock:
            now = self.clock.now()
            unread = [peer for peer in self.peers if peer.read_at is None or now - peer.read_at >= PRESENCE_TIME]
            list(self.parallel_map(self._read, unread))
            now = self.clock.now()
            return [
                peer
                for peer in self.responding()
                if has_recent_proxy(peer.last_polls, client_nat=nat, now=now, recency=self.recency)
            ]

    def _read(self, peer: Peer) -> None:
        polls = self.attempt(peer, lambda: dict(peer.presence.last_polls()))
        # Nothing is known of a peer that does not respond: no offer waits for its proxies.
        peer.last_polls = polls or {}
        peer.read_at = self.clock.now()
