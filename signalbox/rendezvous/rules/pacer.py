"""The pacer of polls: it shares the polls of a function instance with the others, and returns each proxy's interval."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.rendezvous.model.pace import (
    SHARED_EVERY,
    Pace,
    Paces,
    ProxyGroup,
    ProxyKind,
    is_recent,
    next_pace,
    proxy_group,
    served_share,
)
from signalbox.rendezvous.rules.policy import RendezvousPolicy
from signalbox.rendezvous.wire.proxy import ProxyPoll

if TYPE_CHECKING:
    from signalbox.rendezvous.ports import ProxyPaces

# Of the polls in `SHARED_EVERY` one network has this share, and at least this number.
SHARE_OF_NETWORK, LEAST_OF_NETWORK = 0.2, 10


@dataclass(slots=True)
class Pacer:
    """Paces the polls of a function instance; it uses the stored pace once in `SHARED_EVERY`."""

    paces: "ProxyPaces"
    policy: RendezvousPolicy
    stored: Paces = field(default_factory=dict)
    shared_at: dict[ProxyGroup, datetime] = field(default_factory=dict)
    uncounted: dict[ProxyGroup, Counter[ProxyKind]] = field(default_factory=dict)
    networks: Counter[tuple[ProxyGroup, int | None]] = field(default_factory=Counter)

    def count(self, poll: ProxyPoll, *, network: int | None, now: datetime) -> Pace:
        """Count a poll and return the pace of its group, at most `SHARED_EVERY` old.

        Polls of a network beyond its share are not counted: a stranger must not slow the others down.
        """
        group = proxy_group(poll.nat)
        known, shared_at = self.stored.get(group), self.shared_at.get(group)
        self.networks[group, network] += 1
        if self._is_within_share(group, network) and (known is None or now >= known.since):
            self.uncounted.setdefault(group, Counter())[ProxyKind(poll.nat, poll.proxy_type)] += 1
        if shared_at is None or now - shared_at >= SHARED_EVERY:
            self._share(group, now)
        return self.stored[group]

    def is_served(self, poll: ProxyPoll, *, network: int | None, random: float) -> bool:
        """Return whether a counted poll is to look for an offer; `random` is from 0 to 1."""
        group = proxy_group(poll.nat)
        return self._is_within_share(group, network) and random < served_share(
            self.stored[group], target=self.policy.target_polls(group)
        )

    def has_restricted(self, *, now: datetime) -> bool:
        """Return whether restricted proxies poll."""
        pace = self.stored.get(ProxyGroup.RESTRICTED)
        return pace is not None and is_recent(pace, now=now, recency=timedelta(0))

    def _is_within_share(self, group: ProxyGroup, network: int | None) -> bool:
        target = self.policy.target_polls(group) * SHARED_EVERY.total_seconds()
        return network is None or self.networks[group, network] <= max(target * SHARE_OF_NETWORK, LEAST_OF_NETWORK)

    def _share(self, group: ProxyGroup, now: datetime) -> None:
        stored = self.paces.all()
        known, latest = self.stored.get(group), stored.get(group)
        counted = self.uncounted.pop(group, Counter())
        # Polls of an earlier period are not counted in this one, nor those before its beginning.
        if latest and (now < latest.since or (known and known.since != latest.since)):
            counted = Counter()
        pace = self.paces.add(group, counted, now=now)
        following = next_pace(pace, now=now, target=self.policy.target_polls(group))
        if following and self.paces.replace(group, following, replaced=pace):
            pace = following
        self.stored = {**stored, group: pace}
        self.shared_at[group] = now
        self.networks.clear()
