"""The service of proxy polls: it claims an offer that fits, or none, and paces the proxy."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zlib import crc32

from signalbox.rendezvous.model.pace import waiting_time
from signalbox.rendezvous.model.states import (
    BUSY_RECORDS,
    OfferPool,
    RendezvousRecord,
    compatible_pools,
    is_claimable,
    offer_pool,
)
from signalbox.rendezvous.rules.pacer import Pacer
from signalbox.rendezvous.rules.policy import RendezvousPolicy
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import ProxyPoll

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import Offers

# Offers that were sent within such a period are claimed in any order, so that concurrent polls choose different ones.
SHUFFLED_WITHIN = timedelta(seconds=2)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A poll tries this many offers that other polls claim at the same time.
CLAIMS = 3
# Unrestricted proxies leave a newer offer to restricted ones, which can serve no other client (broker/ipc.go).
LEFT_TO_RESTRICTED = timedelta(milliseconds=300)
# In a busy pool, most polls read the offers of `SHORT_LOOK` only: a read unit has about eight.
# The others begin at a random age, to find offers that silent proxies let go behind more records than a poll reads.
SHORT_LOOK, LONG_LOOKS = timedelta(seconds=12), 0.1


@dataclass(frozen=True, slots=True)
class PollResult:
    """The result of a poll: the matched offer, if any, and the time until the proxy's next poll."""

    match: RendezvousRecord | None
    interval: timedelta


@dataclass(frozen=True, slots=True)
class PollService:
    """Serves proxy polls; each ends at once. `random` returns numbers from 0 to 1."""

    offers: "Offers"
    pacer: Pacer
    clock: "Clock"
    random: Callable[[], float]
    policy: RendezvousPolicy
    busy: set[OfferPool] = field(default_factory=set)

    def serve(self, poll: ProxyPoll, *, network: int | None) -> PollResult:
        """Return one of the oldest compatible offers, or none; `network` identifies the proxy's network."""
        now = self.clock.now()
        pace = self.pacer.count(poll, network=network, now=now)
        is_served = self.pacer.is_served(poll, network=network, random=self.random())
        match = self._claim_any(poll, now) if is_served else None
        return PollResult(match, waiting_time(pace, random=self.random()))

    def _claim_any(self, poll: ProxyPoll, now: datetime) -> RendezvousRecord | None:
        found = [record for pool in compatible_pools(poll.nat) for record in self._open_offers(pool, poll.nat, now)]
        for record in sorted(found, key=lambda record: _turn(record, poll))[:CLAIMS]:
            until, is_busy = now + self.policy.match_patience, offer_pool(record.nat) in self.busy
            match = self.offers.claim(record, proxy=poll, now=now, until=until, is_busy=is_busy)
            if match is not None:
                return match
        return None

    def _open_offers(self, pool: OfferPool, nat: Nat, now: datetime) -> list[RendezvousRecord]:
        # The part of the patience that a look leaves out; one that is not below 1 is a short look.
        skipped = self.random() / LONG_LOOKS if pool in self.busy else 0.0
        if skipped >= 1:
            found = self.offers.recent(pool, since=now - SHORT_LOOK, until=now)
        else:
            patience = self.policy.longest_patience
            found = self.offers.recent(pool, since=now - patience, until=now - patience * skipped)
            (self.busy.add if len(found) > BUSY_RECORDS * (1 - skipped) else self.busy.discard)(pool)
        latest = now
        if pool is OfferPool.ANY_PROXY and nat is Nat.UNRESTRICTED and self.pacer.has_restricted(now=now):
            latest = now - LEFT_TO_RESTRICTED
        return [record for record in found if record.created_at <= latest and is_claimable(record, now=now)]


def _turn(record: RendezvousRecord, poll: ProxyPoll) -> tuple[int, int]:
    """Return the place of an offer in the order of a proxy's claims."""
    return (record.created_at - EPOCH) // SHUFFLED_WITHIN, crc32(f"{poll.sid} {record.client_id}".encode())
