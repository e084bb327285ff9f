"""The pacer of polls: it shares the polls of a function instance with the others, and returns each proxy's interval."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.rendezvous.model.pace import (
    NETWORK_GROUPS,
    SHARED_EVERY,
    Pace,
    Paces,
    ProxyGroup,
    ProxyKind,
    allowed_polls,
    is_recent,
    next_pace,
    proxy_group,
    served_share,
)
from signalbox.rendezvous.rules.policy import RendezvousPolicy
from signalbox.rendezvous.wire.proxy import ProxyPoll

if TYPE_CHECKING:
    from signalbox.rendezvous.ports import ProxyPaces


@dataclass(slots=True)
class Pacer:
    """Paces the polls of a function instance; it uses the stored pace once in `SHARED_EVERY`."""

    paces: "ProxyPaces"
    policy: RendezvousPolicy
    stored: Paces = field(default_factory=dict)
    shared_at: dict[ProxyGroup, datetime] = field(default_factory=dict)
    polls: dict[ProxyGroup, Counter[ProxyKind]] = field(default_factory=lambda: defaultdict(Counter))
    networks: dict[ProxyGroup, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def count(self, poll: ProxyPoll, *, network: int | None, now: datetime) -> Pace:
        """Count a poll and return the pace of its group, at most `SHARED_EVERY` old."""
        group = proxy_group(poll.nat)
        shared_at = self.shared_at.get(group)
        self.polls[group][ProxyKind(poll.nat, poll.proxy_type)] += 1
        if network is not None:
            self.networks[group][network % NETWORK_GROUPS] += 1
        if shared_at is None or now - shared_at >= SHARED_EVERY:
            self._share(group, now)
        return self.stored[group]

    def is_served(self, poll: ProxyPoll, *, network: int | None, now: datetime, random: float) -> bool:
        """Return whether a counted poll is to look for an offer; `random` is from 0 to 1.

        A network has its share over all function instances: of its polls beyond it, none looks for an offer.
        """
        group = proxy_group(poll.nat)
        pace, target, share = self.stored[group], self.policy.target_polls(group), 1.0
        if network is not None:
            index = network % NETWORK_GROUPS
            polled = pace.networks.get(index, 0) + self.networks[group][index]
            share = allowed_polls(pace, now=now, target=target) / max(polled, 1)  # none counts after a period
        return random < min(share, 1) * served_share(pace, target=target)

    def has_restricted(self, *, now: datetime) -> bool:
        """Return whether restricted proxies poll."""
        pace = self.stored.get(ProxyGroup.RESTRICTED)
        return pace is not None and is_recent(pace, now=now, recency=timedelta(0))

    def _share(self, group: ProxyGroup, now: datetime) -> None:
        stored = self.paces.all()
        polls, networks = self.polls.pop(group, Counter()), self.networks.pop(group, Counter())
        pace = self.paces.add(group, polls, networks=networks, now=now)
        following = next_pace(pace, now=now, target=self.policy.target_polls(group))
        if following and self.paces.replace(group, following, replaced=pace):
            pace = following
        self.stored = {**stored, group: pace}
        self.shared_at[group] = now
