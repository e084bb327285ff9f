"""The reader of live exchanges' logs, which the Spark tasks of an export import."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from math import inf
from operator import itemgetter
from typing import TypeVar

import boto3

from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.exchange.routing_table import DynamoHeads
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import ListedExchange
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.export import ExportedEvent, audience_text, body_and_headers, settled_events
from signalbox.sarracenia.rights.names import ExchangeName, UserName, parse_exchange_name

ROTATION = 1_000  # topics of an owner, before those of the next one
HEADS_AT_ONCE = 100
SIZE_AT_ONCE = 128 << 20
EVENT_SIZE = 200  # of an event without its texts

Item = TypeVar("Item")
ListedTopic = tuple[str, str, datetime]
"""The names of exchange and topic, and the time at which the exchange was declared."""


@dataclass(frozen=True, slots=True)
class LogTables:
    """The DynamoDB tables of a stage's live exchanges; each task creates its own clients.

    A task reads about `size_at_once` characters.
    """

    live_table: str
    exchange_table: str
    region: str
    size_at_once: int = SIZE_AT_ONCE

    def topics(self, exchange: str | None, pattern: str, places: Mapping[str, str]) -> Iterator[ListedTopic]:
        """Yield the logs with a matching topic, of one exchange, or of all live exchanges, one owner after the other.

        Owners of exchanges without a place come first, the others in the order of `places`. The topics of an exchange
        begin after its place.
        """
        wanted: BindingTrie[bool] = BindingTrie()
        wanted.add(Pattern.parse(pattern), True)  # noqa: FBT003 - the value of a match
        order = {name: number for number, name in enumerate(places, 1)}
        owned: dict[UserName | None, list[Iterator[ListedTopic]]] = {}
        for one in sorted(self._exchanges(exchange), key=lambda one: order.get(one.name, 0)):
            owned.setdefault(one.created_by, []).append(self._topics(one, wanted, places.get(one.name)))
        return _rotated([_rotated(of_one) for of_one in owned.values()])

    def _topics(self, one: ListedExchange, wanted: BindingTrie[bool], last: str | None) -> Iterator[ListedTopic]:
        topics = self.log().every_topic(one.name, None if last is None else RoutingKey(last))
        return ((one.name, topic, one.created_at) for topic in topics if wanted.matching(topic))

    def heads(self) -> DynamoHeads:
        """Return the adapter of the topics' last numbers."""
        table = self._table(self.exchange_table)
        return DynamoHeads(table, table)

    def log(self) -> DynamoTopicLog:
        """Return the adapter of the topic logs."""
        return DynamoTopicLog(self._table(self.live_table))

    def _exchanges(self, exchange: str | None) -> list[ListedExchange]:
        exchanges = DynamoExchanges(self._table(self.exchange_table))
        if exchange is None:
            return [one for one in exchanges.every() if one.is_live]
        found = exchanges.find(parse_exchange_name(exchange))
        return [found.listed] if found is not None and found.live is not None else []

    def _table(self, name: str) -> DynamoTable:
        return DynamoTable(boto3.client("dynamodb", region_name=self.region), name)


def _rotated(all_items: Iterable[Iterator[Item]]) -> Iterator[Item]:
    """Yield some items of each iterator by rotation."""
    left = [*all_items]
    while left:
        for items in [*left]:
            some = list(islice(items, ROTATION))
            yield from some
            if len(some) < ROTATION:
                left.remove(items)


def read_topics(
    tables: LogTables,
    positions: Sequence[tuple[str, str, int]],
    *,
    now: datetime,
    until: float = inf,
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of each topic after its last exported number; `positions` are (exchange, topic, number).

    The topics with the fewest new events are first. Nothing more is read after the tables' `size_at_once`, and after
    `until`, a time of `time.time`. Each topic with other events has a row without an event: `unread` is the error that
    ended its read, or empty.
    """
    log, left = tables.log(), tables.size_at_once
    news = _news(tables.heads(), positions) if time.time() < until else [(0, *one) for one in positions]
    for _, exchange, topic, after in sorted(news):
        try:
            events = settled_events(
                log.events_after(ExchangeName(exchange), RoutingKey(topic), after), after=after, now=now
            )
            while left > 0 and time.time() < until:
                event = next(events, None)
                if event is None:
                    break
                row = log_row(exchange, event)
                left -= EVENT_SIZE + sum(len(str(value)) for value in row)
                yield row
            else:
                yield _unread(exchange, topic, "")
        except Exception as error:  # noqa: BLE001 - whatever it is, other topics are read
            yield _unread(exchange, topic, repr(error))


def _news(heads: DynamoHeads, positions: Iterable[tuple[str, str, int]]) -> Iterator[tuple[int, str, str, int]]:
    """Yield the topics with later numbers, and before each how many it has; the heads of many topics cost one call."""
    left = iter(positions)
    while some := list(islice(left, HEADS_AT_ONCE)):
        for exchange, part in groupby(sorted(some), key=itemgetter(0)):
            after = {RoutingKey(topic): number for _, topic, number in part}
            found = heads.read(ExchangeName(exchange), after)
            for topic, number in after.items():
                count = found[topic].sequence - number if topic in found else 1
                if count > 0:
                    yield count, exchange, topic, number


def _unread(exchange: str, topic: str, reason: str) -> tuple[object, ...]:
    return (exchange, topic, *[None] * 9, reason)


def log_row(exchange: str, exported: ExportedEvent) -> tuple[object, ...]:
    """Return an event's row of the table `logs`, with the count of missing numbers before it, and `unread`."""
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
        None,
    )
