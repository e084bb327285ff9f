"""The reader of live exchanges' logs, which the Spark tasks of an export import."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import boto3

from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import ExchangeRecord
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.export import ExportedEvent, audience_text, body_and_headers, settled_events
from signalbox.sarracenia.rights.names import ExchangeName, parse_exchange_name


@dataclass(frozen=True, slots=True)
class LogTables:
    """The DynamoDB tables of a stage's live exchanges; each task creates its own clients."""

    live_table: str
    exchange_table: str
    region: str

    def topics(self, exchange: str | None, pattern: str) -> Iterator[tuple[str, str, datetime]]:
        """Yield every log to export, of one or all live exchanges, with a matching topic.

        Each has the names of exchange and topic, and the time at which the exchange was declared.
        """
        wanted: BindingTrie[bool] = BindingTrie()
        wanted.add(Pattern.parse(pattern), True)  # noqa: FBT003 - the value of a match
        for one in self._exchanges(exchange):
            for topic in self.log().every_topic(one.name):
                if wanted.matching(topic):
                    yield one.name, topic, one.created_at

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
    """Yield the rows of each topic after its last exported number; `positions` are (exchange, topic, number)."""
    log = tables.log()
    for exchange, topic, after in positions:
        name, key = ExchangeName(exchange), RoutingKey(topic)
        for one in settled_events(log.events_after(name, key, after), after=after, now=now):
            yield log_row(exchange, one)


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
