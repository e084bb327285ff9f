"""The topics of a realm, as the log of live events has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.outbox.ports import TopicLog
from signalbox.live.procedures.overview import Topic
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(frozen=True, slots=True)
class LoggedTopics:
    """`Topics` with events in the log, now or earlier."""

    log: TopicLog

    def beginning_with(self, realm: ExchangeName, prefix: str) -> Sequence[Topic]:
        """Return the topics that begin with a prefix, sorted, with the time of their latest retained event."""
        pattern = TopicPattern(MatchPolicy.PREFIX, prefix)
        retained_at: dict[RoutingKey, datetime] = {}
        for event in self.log.retained(realm, pattern):
            retained_at[event.topic] = max(event.at, retained_at.get(event.topic, event.at))
        topics = {*self.log.topics(realm, pattern), *retained_at}
        return [Topic(topic, retained_at.get(topic)) for topic in sorted(topics)]
