"""The service of proxy polls: it returns an offer at once, or holds the poll until an offer arrives."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.rendezvous.model.held_polls import HeldPoll, candidate_slots
from signalbox.rendezvous.model.states import (
    Claimant,
    ClaimResult,
    ClientId,
    OfferState,
    ProxySessionId,
    Rendezvous,
    compatible_pools,
    is_abandoned,
    is_claimable,
)
from signalbox.rendezvous.rules.matching import RendezvousPolicy
from signalbox.rendezvous.wire.proxy import ProxyPoll
from signalbox.rendezvous.wire.reply import TIMED_OUT, error_reply

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import HeldPolls, Offers, ProxyPresence

# The interval at which a held poll reads its slot for a reserved offer.
TICK = timedelta(milliseconds=250)
# An offer is reserved before it is stored: the poll retries the claim this often, at this interval.
CLAIM_RETRY_INTERVAL = timedelta(milliseconds=50)
CLAIM_RETRIES = 5
# The interval at which a held poll queries the pools, for unreserved offers and those whose proxy did not answer.
QUERY_INTERVAL = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class PollResult:
    """The result of a poll: the matched offer, if any, and whether the poll was held."""

    match: Rendezvous | None
    was_held: bool


@dataclass(frozen=True, slots=True)
class PollService:
    """Serves proxy polls; a poll that is not held costs one query, a held one waits in a numbered slot."""

    offers: "Offers"
    held_polls: "HeldPolls"
    presence: "ProxyPresence"
    clock: "Clock"
    random_bits: Callable[[], int]
    policy: RendezvousPolicy

    def serve(self, poll: ProxyPoll, *, network: int | None) -> PollResult:
        """Return the oldest compatible offer; wait for one if a slot of the proxy's network is free."""
        self.presence.record_poll(poll.nat, now=self.clock.now())
        # First the slot, then the query: an offer that arrives in between reserves the slot.
        held = self._acquire_slot(poll, network)
        if held is None:
            return PollResult(self._claim_oldest(poll), was_held=False)
        match, reserved = None, None
        try:
            match = self._claim_oldest(poll)
            was_held = match is None
            match = match or self._wait(poll, held)
        finally:
            # A slot with a reserved offer becomes free by itself.
            if match is None or match.reserved_for != held.sid:
                reserved = self.held_polls.release(held)
        if match is None and reserved is not None:
            # It was reserved after the last read, and is available to this poll only for a second.
            match = self._claim_with_retries(reserved, held).match
        return PollResult(match, was_held)

    def _acquire_slot(self, poll: ProxyPoll, network: int | None) -> HeldPoll | None:
        if not self.policy.poll_hold:
            return None
        limit, random_bits = self.policy.poll_hold_limit, self.random_bits()
        for slot in candidate_slots(limit, random_bits=random_bits, network=network):
            now = self.clock.now()
            held = HeldPoll(
                slot=slot,
                sid=ProxySessionId(poll.sid),
                nat=poll.nat,
                proxy_type=poll.proxy_type,
                clients=poll.clients,
                since=now,
                until=now + self.policy.poll_hold,
            )
            if self.held_polls.acquire(held, now=now):
                return held
        return None

    def _wait(self, poll: ProxyPoll, held: HeldPoll) -> Rendezvous | None:
        next_query_at = held.since + QUERY_INTERVAL
        match = None
        while match is None and self.clock.now() < held.until:
            self.clock.sleep(TICK.total_seconds())
            match = self._claim_reserved(held)
            if match is None and self.clock.now() >= next_query_at:
                match = self._claim_oldest(poll)
                next_query_at = self.clock.now() + QUERY_INTERVAL
        return match

    def _claim_reserved(self, held: HeldPoll) -> Rendezvous | None:
        client_id = self.held_polls.reserved_offer(held)
        if client_id is None:
            return None
        claim = self._claim_with_retries(client_id, held)
        # The offer exists but another proxy claimed it: clear the slot for the next reservation.
        if claim.match is None and claim.is_stored:
            self.held_polls.acquire(held, now=self.clock.now())
        return claim.match

    def _claim_with_retries(self, client_id: ClientId, held: HeldPoll) -> ClaimResult:
        """Claim the offer that is reserved for this poll; retry while it is not stored yet."""
        claimant = Claimant(held.sid, held.proxy_type)
        claim = self._claim(client_id, claimant)
        for _ in range(CLAIM_RETRIES):
            if claim.is_stored:
                break
            self.clock.sleep(CLAIM_RETRY_INTERVAL.total_seconds())
            claim = self._claim(client_id, claimant)
        return claim

    def _claim_oldest(self, poll: ProxyPoll) -> Rendezvous | None:
        now, proxy = self.clock.now(), Claimant(ProxySessionId(poll.sid), poll.proxy_type)
        for record in self.offers.claimable(compatible_pools(poll.nat), now=now):
            if is_abandoned(record, now):
                self._close(record.client_id, now=now)
            elif is_claimable(record, sid=proxy.sid, now=now):
                match = self._claim(record.client_id, proxy).match
                if match is not None:
                    return match
        return None

    def _close(self, client_id: ClientId, *, now: datetime) -> None:
        leased_until = now + self.policy.client_queue_lease
        self.offers.close(client_id, state=OfferState.EXPIRED, reply=error_reply(TIMED_OUT), leased_until=leased_until)

    def _claim(self, client_id: ClientId, proxy: Claimant) -> ClaimResult:
        now = self.clock.now()
        return self.offers.claim(client_id, proxy=proxy, now=now, until=now + self.policy.match_patience)
