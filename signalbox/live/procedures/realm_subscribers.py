"""The subscribers of realms, as the sessions of a function instance look them up."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.ports import Attached
from signalbox.live.router.directory import CachedSubscriberDirectory
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(frozen=True, slots=True)
class CachedRealmSubscribers:
    """`RealmSubscribers` from a router's directory.

    The directory is for one thread at a time: a function with several threads passes a lock as `exclusive`.
    """

    directory: CachedSubscriberDirectory
    exclusive: AbstractContextManager[object] = field(default_factory=nullcontext)

    def watched(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Collection[RoutingKey]:
        """Return the given topics that have subscribers."""
        with self.exclusive:
            matching = self.directory.lookup(realm, topics)
            return [topic for topic in topics if matching(topic)]

    def shared(
        self, realm: ExchangeName, patterns: Collection[TopicPattern], *, without: SessionId | None = None
    ) -> Collection[TopicPattern]:
        """Return the given patterns to which any session is subscribed, not counting the session `without`."""
        with self.exclusive:
            self.directory.lookup(realm, _topics(patterns))
            return [
                pattern
                for pattern in patterns
                if any(row.subscriber.listener.session != without for row in self.directory.attached(realm, pattern))
            ]

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Sequence[Attached]:
        """Return the sessions that are subscribed to a pattern."""
        with self.exclusive:
            self.directory.lookup(realm, _topics([pattern]))
            rows = self.directory.attached(realm, pattern)
            return [Attached(row.subscriber.listener.session, row.created_at) for row in rows]


def _topics(patterns: Collection[TopicPattern]) -> Collection[RoutingKey]:
    return [RoutingKey(pattern.uri) for pattern in patterns if pattern.match is MatchPolicy.EXACT]
