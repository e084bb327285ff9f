"""What happens to a proxy's poll: an offer at once, an offer while it is held, or none."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from signalbox.clock import Clock
from signalbox.rendezvous.ports import HeldPolls, Offers, Presence
from signalbox.rendezvous.rules.held_polls import HeldPoll, slots_to_try
from signalbox.rendezvous.rules.matching import Policy
from signalbox.rendezvous.rules.states import (
    Claim,
    Claimant,
    ClientId,
    ProxySessionId,
    Rendezvous,
    State,
    fitting_pools,
    is_abandoned,
    is_claimable,
)
from signalbox.rendezvous.wire.proxy import ProxyPoll
from signalbox.rendezvous.wire.reply import TIMED_OUT, error_reply

# A held poll looks at its slot, where new offers are shown, this often.
TICK = timedelta(milliseconds=250)
# An offer is shown before it is stored: for so many looks, so far apart, it may be on its way.
STORED_AFTER = timedelta(milliseconds=50)
STORED_LOOKS = 5
# And through the pools this often, for offers that another proxy gave back or that were never shown to anybody.
LOOK_EVERY = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class PollResult:
    """The offer that a poll was given, if any, and whether the poll was held."""

    match: Rendezvous | None
    was_held: bool


@dataclass(frozen=True, slots=True)
class PollDesk:
    """Takes polls. A proxy that is not held costs one look; a held one waits in a numbered slot."""

    offers: Offers
    held_polls: HeldPolls
    presence: Presence
    clock: Clock
    random_bits: Callable[[], int]
    policy: Policy

    def serve(self, poll: ProxyPoll) -> PollResult:
        """Return the oldest fitting offer, waiting for one if a slot is free."""
        self.presence.note(poll.nat, now=self.clock.now())
        # The slot first, then the one look: an offer that comes in between is shown to the slot.
        held = self._take_slot(poll)
        if held is None:
            return PollResult(self._claim_oldest(poll), was_held=False)
        try:
            match = self._claim_oldest(poll)
            was_held = match is None
            match = match or self._wait(poll, held)
        finally:
            shown = self.held_polls.leave(held)
        if match is None and shown is not None:
            # It came after the last look, and is kept for this poll alone for a second.
            match = self._claim_lent(shown, held).match
        return PollResult(match, was_held)

    def _take_slot(self, poll: ProxyPoll) -> HeldPoll | None:
        if not self.policy.poll_hold:
            return None
        for slot in slots_to_try(self.policy.poll_hold_limit, random_bits=self.random_bits()):
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
            if self.held_polls.take(held, now=now):
                return held
        return None

    def _wait(self, poll: ProxyPoll, held: HeldPoll) -> Rendezvous | None:
        look_again_at = held.since + LOOK_EVERY
        match = None
        while match is None and self.clock.now() < held.until:
            self.clock.sleep(TICK.total_seconds())
            match = self._claim_shown(held)
            if match is None and self.clock.now() >= look_again_at:
                match = self._claim_oldest(poll)
                look_again_at = self.clock.now() + LOOK_EVERY
        return match

    def _claim_shown(self, held: HeldPoll) -> Rendezvous | None:
        client_id = self.held_polls.look(held)
        if client_id is None:
            return None
        claim = self._claim_lent(client_id, held)
        # One that is stored and not to be had went to another proxy: free the slot's mind for the next one.
        if claim.match is None and claim.is_stored:
            self.held_polls.take(held, now=self.clock.now())
        return claim.match

    def _claim_lent(self, client_id: ClientId, held: HeldPoll) -> Claim:
        """Claim an offer that was shown to this poll, also if it is stored only now."""
        claimant = Claimant(held.sid, held.proxy_type)
        claim = self._claim(client_id, claimant)
        for _ in range(STORED_LOOKS):
            if claim.is_stored:
                break
            self.clock.sleep(STORED_AFTER.total_seconds())
            claim = self._claim(client_id, claimant)
        return claim

    def _claim_oldest(self, poll: ProxyPoll) -> Rendezvous | None:
        now, proxy = self.clock.now(), Claimant(ProxySessionId(poll.sid), poll.proxy_type)
        for record in self.offers.claimable(fitting_pools(poll.nat), now=now):
            if is_abandoned(record, now):
                self.offers.close(record.client_id, state=State.EXPIRED, reply=error_reply(TIMED_OUT))
            elif is_claimable(record, sid=proxy.sid, now=now):
                match = self._claim(record.client_id, proxy).match
                if match is not None:
                    return match
        return None

    def _claim(self, client_id: ClientId, proxy: Claimant) -> Claim:
        now = self.clock.now()
        return self.offers.claim(client_id, proxy=proxy, now=now, until=now + self.policy.match_patience)
