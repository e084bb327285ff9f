"""The reader of live exchanges' logs, which the Spark tasks of an export import."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from operator import itemgetter

import boto3

from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.exchange.routing_table import DynamoHeads
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import ExchangeRecord
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.export import ExportedEvent, audience_text, body_and_headers, settled_events
from signalbox.sarracenia.rights.names import ExchangeName, parse_exchange_name

ROTATION = 1_000  # topics of an exchange, before those of the next one
HEADS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class LogTables:
    """The DynamoDB tables of a stage's live exchanges; each task creates its own clients."""

    live_table: str
    exchange_table: str
    region: str

    def topics(
        self, exchange: str | None, pattern: str, last: Mapping[str, str]
    ) -> Iterator[tuple[str, str, datetime]]:
        """Yield every log to export, of one or all live exchanges by rotation, with a matching topic.

        Each has the names of exchange and topic, and the time at which the exchange was declared. The topics of an
        exchange begin after the one that was exported last.
        """
        wanted: BindingTrie[bool] = BindingTrie()
        wanted.add(Pattern.parse(pattern), True)  # noqa: FBT003 - the value of a match
        left = [(one, self._topics(one, wanted, last.get(one.name))) for one in self._exchanges(exchange)]
        while left:
            for one, topics in [*left]:
                some = list(islice(topics, ROTATION))
                yield from ((one.name, topic, one.created_at) for topic in some)
                if len(some) < ROTATION:
                    left.remove((one, topics))

    def _topics(self, one: ExchangeRecord, wanted: BindingTrie[bool], last: str | None) -> Iterator[RoutingKey]:
        topics = self.log().every_topic(one.name, None if last is None else RoutingKey(last))
        return (topic for topic in topics if wanted.matching(topic))

    def heads(self) -> DynamoHeads:
        """Return the adapter of the topics' last numbers."""
        return DynamoHeads(self._table(self.exchange_table))

    def log(self) -> DynamoTopicLog:
        """Return the adapter of the topic logs."""
        return DynamoTopicLog(self._table(self.live_table))

    def _exchanges(self, exchange: str | None) -> list[ExchangeRecord]:
        exchanges = DynamoExchanges(self._table(self.exchange_table))
        found = exchanges.every() if exchange is None else [exchanges.find(parse_exchange_name(exchange))]
        return [one for one in found if one is not None and one.live is not None]

    def _table(self, name: str) -> DynamoTable:
        return DynamoTable(boto3.client("dynamodb", region_name=self.region), name)


def read_topics(
    tables: LogTables, positions: Iterable[tuple[str, str, int]], *, now: datetime
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of each topic after its last exported number; `positions` are (exchange, topic, number).

    The heads of many topics cost one call, so that only the topics with later numbers cost one each.
    """
    log, heads, left = tables.log(), tables.heads(), iter(positions)
    while some := list(islice(left, HEADS_AT_ONCE)):
        for exchange, part in groupby(sorted(some), key=itemgetter(0)):
            name, after = ExchangeName(exchange), {RoutingKey(topic): number for _, topic, number in part}
            found = heads.read(name, after)
            for topic in [one for one in after if one not in found or found[one].sequence > after[one]]:
                for event in settled_events(log.events_after(name, topic, after[topic]), after=after[topic], now=now):
                    yield log_row(exchange, event)


def log_row(exchange: str, exported: ExportedEvent) -> tuple[object, ...]:
    """Return an event's row of the table `logs`, with the count of missing numbers before it."""
    event = exported.event
    body, headers = body_and_headers(event)
    return (
        exchange,
        event.topic,
        event.sequence,
        event.at,
        event.publication,
        event.disclosed and event.disclosed.authid,
        body,
        event.omitted_bytes,
        headers,
        audience_text(event),
        exported.missing,
    )
