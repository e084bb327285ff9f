"""The settings that the rules of rendezvous depend on, and how an offer is placed with a waiting proxy."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.rendezvous.ports import HeldPolls, Presence
from signalbox.rendezvous.rules.held_polls import HeldPoll, has_prospect, preferred
from signalbox.rendezvous.rules.states import ClientId, ProxySessionId
from signalbox.rendezvous.wire.nat import Nat

# For this long an offer that was shown to a held poll is kept for it alone; it looks four times in it.
LENT_FOR = timedelta(seconds=1)
# Offers that come together share one look at the held polls, if it is not older than this.
SHARED_FOR = timedelta(milliseconds=100)


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


@dataclass(slots=True)
class Candidates:
    """The held polls of the last read, each given to one caller only.

    Threads that share one instance give it a `lock`; its default suits a single thread.
    """

    held_polls: HeldPolls
    seen_at: datetime | None = None
    left: list[HeldPoll] = field(default_factory=list)
    lock: AbstractContextManager[object] = field(default_factory=nullcontext)

    def take(self, client_id: ClientId, *, nat: Nat, now: datetime) -> HeldPoll | None:
        """Return the best held poll for a client that nobody here was given yet; None only after a look at `now`."""
        with self.lock:
            if self.seen_at is None or self.seen_at < now - SHARED_FOR:
                self._look(now)
            best = self._best(client_id, nat, now)
            if best is None and self.seen_at != now:
                self._look(now)
                best = self._best(client_id, nat, now)
            if best is not None:
                self.left.remove(best)
            return best

    def _best(self, client_id: ClientId, nat: Nat, now: datetime) -> HeldPoll | None:
        return next(iter(preferred(self.left, client_nat=nat, client_id=client_id, now=now)), None)

    def _look(self, now: datetime) -> None:
        self.left, self.seen_at = self.held_polls.held(now=now), now


@dataclass(frozen=True, slots=True)
class Matchmaker:
    """Finds the held poll that an offer is shown to first."""

    candidates: Candidates
    presence: Presence
    policy: Policy

    def place(self, client_id: ClientId, *, nat: Nat, now: datetime) -> Placement:
        """Show the offer to the best held poll; without one, say whether a fitting proxy may come in time."""
        while poll := self.candidates.take(client_id, nat=nat, now=now):
            if self.candidates.held_polls.lend(poll, client_id=client_id):
                return Placement(poll.sid, is_hopeful=True)
        last_polls = self.presence.last_polls()
        hopeful = has_prospect(last_polls, client_nat=nat, now=now, recency=self.policy.proxy_recency)
        return Placement(None, is_hopeful=hopeful)
