"""The settings that the rules of rendezvous depend on, and how an offer is placed with a waiting proxy."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.ports import HeldPolls, Presence
from signalbox.rendezvous.broker import ClientId, ProxySessionId
from signalbox.rendezvous.held import has_prospect, preferred
from signalbox.rendezvous.nat import Nat

# For this long an offer that was shown to a held poll is kept for it alone; it looks five times in it.
LENT_FOR = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Policy:
    """How long who waits; `docs/settings.md` describes each setting."""

    sqs_patience: timedelta = timedelta(seconds=30)
    http_patience: timedelta = timedelta(seconds=5)
    match_patience: timedelta = timedelta(seconds=5)
    proxy_recency: timedelta = timedelta(seconds=60)
    poll_hold: timedelta = timedelta(seconds=10)
    poll_hold_limit: int = 50
    client_queue_lease: timedelta = timedelta(seconds=120)


@dataclass(frozen=True, slots=True)
class Placement:
    """What waiting can bring a new offer: a held poll that it was shown to, or the prospect of a later one."""

    lent_to: ProxySessionId | None
    is_hopeful: bool

    def available_at(self, now: datetime) -> datetime:
        """Return when any proxy may claim the offer."""
        return now + LENT_FOR if self.lent_to else now


@dataclass(frozen=True, slots=True)
class Matchmaker:
    """Finds the held poll that an offer is shown to first."""

    held_polls: HeldPolls
    presence: Presence
    policy: Policy

    def place(self, client_id: ClientId, *, nat: Nat, now: datetime) -> Placement:
        """Show the offer to the best held poll; without one, say whether a fitting proxy may come in time."""
        for poll in preferred(self.held_polls.held(now=now), client_nat=nat, client_id=client_id, now=now):
            if self.held_polls.lend(poll, client_id=client_id):
                return Placement(poll.sid, is_hopeful=True)
        last_polls = self.presence.last_polls()
        hopeful = has_prospect(last_polls, client_nat=nat, now=now, recency=self.policy.proxy_recency)
        return Placement(None, is_hopeful=hopeful)
