"""The pacer of polls: it shares the polls of a function instance with the others, and returns each proxy's interval."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.rendezvous.model.pace import (
    LOCAL_GROUP,
    NETWORK_GROUPS,
    SHARED_EVERY,
    Pace,
    Paces,
    ProxyGroup,
    ProxyKind,
    counted_polls,
    is_recent,
    next_pace,
    proxy_group,
    served_polls,
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
    # The polls of one network group that count and that are served, of those in the stored pace and in `networks`.
    limits: dict[ProxyGroup, tuple[float, float]] = field(default_factory=dict)
    polls: dict[ProxyGroup, Counter[ProxyKind]] = field(default_factory=lambda: defaultdict(Counter))
    networks: dict[ProxyGroup, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def count(self, poll: ProxyPoll, *, network: int | None, now: datetime) -> Pace:
        """Count a poll and return the pace of its group, at most `SHARED_EVERY` old."""
        group, index = proxy_group(poll.nat), _network_group(network)
        self.networks[group][index] += 1
        if group not in self.limits or self._polled(group, index) <= self.limits[group][0]:
            self.polls[group][ProxyKind(poll.nat, poll.proxy_type)] += 1
        if group not in self.shared_at or now - self.shared_at[group] >= SHARED_EVERY:
            self._share(group, now)
        return self.stored[group]

    def is_served(self, poll: ProxyPoll, *, network: int | None, random: float) -> bool:
        """Return whether a counted poll is to look for an offer; `random` is from 0 to 1.

        A network has its part over all function instances: of its polls beyond it, none looks for an offer.
        """
        group = proxy_group(poll.nat)
        # Compared, not divided: after the end of a period, there may be no poll of a network.
        return random * self._polled(group, _network_group(network)) < self.limits[group][1]

    def has_restricted(self, *, now: datetime) -> bool:
        """Return whether restricted proxies poll."""
        pace = self.stored.get(ProxyGroup.RESTRICTED)
        return pace is not None and is_recent(pace, now=now, recency=timedelta(0))

    def _polled(self, group: ProxyGroup, index: int) -> int:
        return self.stored[group].networks.get(index, 0) + self.networks[group][index]

    def _share(self, group: ProxyGroup, now: datetime) -> None:
        stored, target = self.paces.all(), self.policy.target_polls(group)
        polls, networks = self.polls.pop(group, Counter()), self.networks.pop(group, Counter())
        pace = self.paces.add(group, polls, networks=networks, now=now)
        following = next_pace(pace, now=now, target=target)
        if following and self.paces.replace(group, following, replaced=pace):
            pace = following
        self.stored = {**self.stored, **stored, group: pace}  # those of each shared group, also if its item is gone
        self.limits[group] = counted_polls(pace, now=now), served_polls(pace, now=now, target=target)
        self.shared_at[group] = now


def _network_group(network: int | None) -> int:
    return LOCAL_GROUP if network is None else network % NETWORK_GROUPS
