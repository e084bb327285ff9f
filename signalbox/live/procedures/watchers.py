"""What sessions look up in a realm: who watches it, found as routers find subscribers, and the topics that it has."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.outbox.ports import TopicLog
from signalbox.live.procedures.overview import Topic
from signalbox.live.router.directory import CachedSubscriberDirectory
from signalbox.live.session.ports import Attached, Watchers
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(frozen=True, slots=True)
class KnownWatchers:
    """`Watchers` that knows from before what has not changed since: a look costs one small read."""

    directory: CachedSubscriberDirectory
    table: Watchers
    _alone: Lock = field(default_factory=Lock)  # the directory is for one thread

    def watched(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Collection[RoutingKey]:
        """Return those of WAMP's own topics that somebody is subscribed to."""
        with self._alone:
            matching = self.directory.lookup(realm, topics)
            return [topic for topic in topics if matching(topic)]

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Sequence[Attached]:
        """Return the sessions that are subscribed to a pattern."""
        return self.table.attached(realm, pattern)


@dataclass(frozen=True, slots=True)
class LoggedTopics:
    """`Topics`: those of which something is, or was, in the log."""

    log: TopicLog

    def beginning_with(self, realm: ExchangeName, prefix: str) -> Sequence[Topic]:
        """Return the topics that begin with a text, in their order, with the time of the latest that is retained."""
        pattern = TopicPattern(MatchPolicy.PREFIX, prefix)
        retained_at: dict[RoutingKey, datetime] = {}
        for event in self.log.retained(realm, pattern):
            retained_at[event.topic] = max(event.at, retained_at.get(event.topic, event.at))
        topics = {*self.log.topics(realm, pattern), *retained_at}
        return [Topic(topic, retained_at.get(topic)) for topic in sorted(topics)]
