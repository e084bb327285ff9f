"""The settings of the rendezvous rules, and the reservation of held polls for new offers."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.rendezvous.model.held_polls import HeldPoll, has_recent_proxy, ranked_polls
from signalbox.rendezvous.model.states import ClientId, ProxySessionId
from signalbox.rendezvous.wire.nat import Nat

if TYPE_CHECKING:
    from signalbox.rendezvous.ports import HeldPolls, ProxyPresence

# Only the held poll may claim its reserved offer for this long; the poll reads its slot four times in that time.
RESERVATION_TIME = timedelta(seconds=1)
# Offers share one read of the held polls if it is not older than this.
CACHE_TIME = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class RendezvousPolicy:
    """The waiting times and limits of rendezvous; `docs/settings.md` describes each setting."""

    sqs_patience: timedelta = timedelta(seconds=30)
    http_patience: timedelta = timedelta(seconds=5)
    match_patience: timedelta = timedelta(seconds=5)
    proxy_recency: timedelta = timedelta(seconds=60)
    poll_hold: timedelta = timedelta(seconds=10)
    poll_hold_limit: int = 50
    client_queue_lease: timedelta = timedelta(seconds=120)


@dataclass(frozen=True, slots=True)
class Reservation:
    """The result of a reservation.

    `reserved_for` is the proxy session of the reserved poll, if there is one. `is_matchable` is False if no compatible
    proxy waits and none polled recently, so that the offer is refused.
    """

    reserved_for: ProxySessionId | None
    is_matchable: bool

    def available_at(self, now: datetime) -> datetime:
        """Return the time from which every compatible proxy may claim the offer."""
        return now + RESERVATION_TIME if self.reserved_for else now


@dataclass(slots=True)
class HeldPollCache:
    """A cache of the held polls for `CACHE_TIME`; it returns each poll to one caller only.

    Threads that share one instance pass a `lock`; the default is for a single thread.
    """

    held_polls: "HeldPolls"
    read_at: datetime | None = None
    unassigned: list[HeldPoll] = field(default_factory=list)
    lock: AbstractContextManager[object] = field(default_factory=nullcontext)

    def take(self, client_id: ClientId, *, nat: Nat, now: datetime) -> HeldPoll | None:
        """Remove and return the best held poll for a client, or return None; only a read at `now` can lead to None."""
        with self.lock:
            if self.read_at is None or self.read_at < now - CACHE_TIME:
                self._read(now)
            best = self._best(client_id, nat, now)
            if best is None and self.read_at != now:
                self._read(now)
                best = self._best(client_id, nat, now)
            if best is not None:
                self.unassigned.remove(best)
            return best

    def _best(self, client_id: ClientId, nat: Nat, now: datetime) -> HeldPoll | None:
        return next(iter(ranked_polls(self.unassigned, client_nat=nat, client_id=client_id, now=now)), None)

    def _read(self, now: datetime) -> None:
        self.unassigned, self.read_at = self.held_polls.held(now=now), now


@dataclass(frozen=True, slots=True)
class PollReserver:
    """Reserves held polls for new offers."""

    cache: HeldPollCache
    presence: "ProxyPresence"
    policy: RendezvousPolicy

    def reserve(self, client_id: ClientId, *, nat: Nat, now: datetime) -> Reservation:
        """Reserve the best held poll for the offer; without one, check for a compatible proxy that polled recently."""
        while poll := self.cache.take(client_id, nat=nat, now=now):
            if self.cache.held_polls.reserve(poll, client_id=client_id, until=now + RESERVATION_TIME):
                return Reservation(poll.sid, is_matchable=True)
        last_polls = self.presence.last_polls()
        is_matchable = has_recent_proxy(last_polls, client_nat=nat, now=now, recency=self.policy.proxy_recency)
        return Reservation(None, is_matchable=is_matchable)
