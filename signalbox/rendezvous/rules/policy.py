"""The waiting times and the pace of the rendezvous rules."""

from dataclasses import dataclass
from datetime import timedelta

from signalbox.rendezvous.model.pace import ProxyGroup

# Of the target. Unrestricted proxies serve the clients of both pools.
SHARES = {ProxyGroup.RESTRICTED: 1 / 3, ProxyGroup.UNRESTRICTED: 2 / 3}


@dataclass(frozen=True, slots=True)
class RendezvousPolicy:
    """The waiting times and the pace of rendezvous; `docs/settings.md` describes each setting."""

    sqs_patience: timedelta = timedelta(seconds=30)
    http_patience: timedelta = timedelta(seconds=5)
    match_patience: timedelta = timedelta(seconds=5)
    proxy_recency: timedelta = timedelta(seconds=60)
    client_queue_lease: timedelta = timedelta(seconds=120)
    polls_per_minute: int = 600

    @property
    def longest_patience(self) -> timedelta:
        """The longest time that an offer is open."""
        return max(self.sqs_patience, self.http_patience)

    @property
    def kept_for(self) -> timedelta:
        """The time from an offer to the end of the lease of its client's queue."""
        return self.longest_patience + self.client_queue_lease

    def target_polls(self, group: ProxyGroup) -> float:
        """Return the target in polls a second of a group of proxies."""
        return self.polls_per_minute / 60 * SHARES[group]
