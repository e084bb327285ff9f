"""The lookup of a realm's subscribers with a cache, for meta events and the subscription meta API."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.ports import Attached, SubscriptionLookup
from signalbox.live.router.directory import CachedSubscriberDirectory
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(frozen=True, slots=True)
class CachedSubscriptionLookup:
    """`SubscriptionLookup` that keeps a router's directory: a lookup without changes costs one small read.

    The directory is for one thread at a time: a function with several threads passes a lock as `exclusive`.
    """

    directory: CachedSubscriberDirectory
    table: SubscriptionLookup
    exclusive: AbstractContextManager[object] = field(default_factory=nullcontext)

    def watched(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Collection[RoutingKey]:
        """Return the given meta topics that have subscribers."""
        with self.exclusive:
            matching = self.directory.lookup(realm, topics)
            return [topic for topic in topics if matching(topic)]

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Sequence[Attached]:
        """Return the sessions that are subscribed to a pattern."""
        return self.table.attached(realm, pattern)
