"""Topic logs in the table `Live`: one item per event, per topic, and per topic's retained events.

A realm for Arvados' clients has one more item for each event that carries a log row, by the row's id.

An event costs one write unit per KB of its compressed size, and a retained event twice as much. A topic's first event
costs one unit more, as does a later one every `COVERED / 2`.
"""

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from signalbox.aws.live.items import (
    ROWS_SECONDS,
    last_topic,
    log_key,
    log_partition,
    number_key,
    retained_keys,
    row_key,
    row_sort_key,
    rows_partition,
    topic_of,
    topic_sort_key,
    topics_partition,
)
from signalbox.aws.live.stored_events import event_with_cost, stored_event
from signalbox.aws.shared.dynamodb import MAXIMUM_WRITES, DynamoTable, milliseconds, moment, ttl
from signalbox.aws.shared.expressions import Delete, Expression, Item, Put, attr
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.arvados.rows import row_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.read_limits import NAMED, QUERY, TOPIC, TOPICS_PAGE, InstanceReads, PastTooLarge, ReadBudget
from signalbox.live.log.retention import LONG_AGO, NEVER, retention_of
from signalbox.live.log.selection import is_logged
from signalbox.live.wamp.audience import UNRESTRICTED
from signalbox.live.wamp.codec import MAXIMUM_FRAME_BYTES
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName

LEAST_PAGE = 100  # of a topic's events: the newest ones may be for other sessions
KNOWN_TOPICS = 100_000  # that a router remembers to be in the table
TTL_ROOM = timedelta(hours=1)
# A topic's item covers the events that are logged within this time, and is written again in the second half of it: what
# another instance writes at the same moment covers the first half, too. The numbers of a topic, in its head, stay.
COVERED = timedelta(hours=1)
TOPICS_AT_ONCE = 100  # of which the events are deleted together
# Events beyond a log's retention count that are kept, because a pending backfill may still include them.
KEPT_BEHIND = 1_000

# Of the events with log rows, which clients of Arvados' dialect request when they connect again.
ROWS_KEPT_FOR = timedelta(minutes=30)
ROWS_OF_A_PARTITION = timedelta(seconds=ROWS_SECONDS)
ROWS_AT_ONCE = 250  # of a partition: ids mostly rise with time, so a request reads few rows of the later ones
ROW_AGES = [number * ROWS_OF_A_PARTITION for number in range(ROWS_KEPT_FOR // ROWS_OF_A_PARTITION + 2)]

UNTIL = "until"


@dataclass(slots=True)
class DynamoTopicLog:
    """Implementation of `TopicLog` and `EventLog`. `budget` limits what a request reads, and `is_late` when it does."""

    table: DynamoTable
    parallel_map: ParallelMap = serial_map
    budget: ReadBudget | None = None
    is_late: Callable[[], bool] = lambda: False
    _known: dict[Hashable, datetime] = field(default_factory=dict)  # until when topics' items are not written again
    _reads: InstanceReads = field(default_factory=lambda: InstanceReads(time.monotonic, Lock()))
    _turns: "WeakValueDictionary[Hashable, Lock]" = field(default_factory=WeakValueDictionary)  # while they are taken

    @contextmanager
    def request(self, reader: Hashable) -> "Iterator[DynamoTopicLog]":
        """Return the log for one request of a reader, which keeps what it has read until the request ends."""
        with self._reads.exclusive:
            turn = self._turns.setdefault(reader, Lock())
        with turn, self._reads.request(reader, self.is_late) as budget:
            yield replace(self, budget=budget)

    @property
    def is_large(self) -> bool:
        """Return whether the request has read more than `SMALL`, above which requests wait for one another."""
        return self.budget is not None and self.budget.is_large

    def count_post(self, size: int) -> None:
        """Count a post that follows the request, with its size in bytes; API Gateway charges for each 32 KB."""
        if self.budget is not None:
            self.budget.posts += 1 + size // MAXIMUM_FRAME_BYTES

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:
        """Append events to the logs of their topics. Idempotent.

        Raises `ItemBusy` if DynamoDB does not process all writes; some events may then be in the logs.
        """
        self.write(realm, events, self.changes(realm, events, live), live)

    def write(
        self, realm: ExchangeName, events: Sequence[LoggedEvent], writes: Sequence[Put | Delete], live: LiveSettings
    ) -> None:
        """Execute the `changes` of events. Idempotent. Raises `ItemBusy`; some events may then be in the logs."""
        calls = [writes[start : start + MAXIMUM_WRITES] for start in range(0, len(writes), MAXIMUM_WRITES)]
        for _ in self.parallel_map(self.table.write_all, calls):
            pass
        self.remember(realm, events, live)

    def changes(self, realm: ExchangeName, events: Sequence[LoggedEvent], live: LiveSettings) -> Sequence[Put | Delete]:
        """Return the writes by which events are appended; no two have one key."""
        writes = ((_key(write), write) for event in events for write in self._writes(realm, event, live))
        return [*dict(writes).values()]

    def events(self, realm: ExchangeName, topic: RoutingKey, *, live: LiveSettings, now: datetime) -> list[LoggedEvent]:
        """Return the unexpired events of a topic in their order, by a strongly consistent read."""
        return [*self.newest_first(realm, topic, lambda _: False, live=live, now=now)][::-1]

    def newest_first(
        self,
        realm: ExchangeName,
        topic: RoutingKey,
        is_kept: Callable[[LoggedEvent], bool],
        *,
        live: LiveSettings,
        now: datetime,
        page: int | None = None,
    ) -> Iterator[LoggedEvent]:
        """Yield the events of `events`, newest first, and also expired ones that are kept."""
        retention = retention_of(topic, live.rules, otherwise=live.retention)
        kept = read = 0
        limit = min((one for one in (retention.count, page and max(page, LEAST_PAGE)) if one), default=None)
        pages = {} if limit is None else {"Limit": min(limit, 2**31 - 1)}  # DynamoDB refuses a larger one
        log = attr("pk").eq(log_partition(realm, topic))
        for item in self._query(log, ScanIndexForward=False, **pages):
            event, read = self._spent_for(item), read + 1
            is_expired = kept == retention.count or (retention.age is not None and now - event.at > retention.age)
            if is_expired and not is_kept(event):
                return
            if is_logged(event) or is_kept(event):
                yield event
            kept += is_logged(event) and not is_expired
        if read > KEPT_BEHIND and retention.age is None and is_kept(event) and (event.sequence or 0) > 1:
            raise PastTooLarge(f"more than {KEPT_BEHIND:,} events of a topic came since the request: subscribe again")

    def every_topic(self, realm: ExchangeName, after: RoutingKey | None = None) -> Iterator[RoutingKey]:
        """Yield all topics of a realm that may have events, sorted by name; those up to `after` come last."""
        topics, place = attr("pk").eq(topics_partition(realm)), attr("sk")
        last = topic_sort_key(after or RoutingKey(""))
        parts = [topics] if after is None else [topics & place.gt(last), topics & place.lte(last)]
        return (topic_of(item) for part in parts for item in self.table.query(part))

    def events_after(self, realm: ExchangeName, topic: RoutingKey, sequence: int) -> Iterator[LoggedEvent]:
        """Yield the events of a topic after a number, in their order, as far as the table still has them."""
        later = attr("pk").eq(log_partition(realm, topic)) & attr("sk").gt(number_key(sequence))
        return (event_with_cost(item)[0] for item in self.table.query(later))

    def topics(
        self, realm: ExchangeName, pattern: TopicPattern, *, since: datetime, named: Collection[RoutingKey] = ()
    ) -> dict[RoutingKey, datetime]:
        """Return the topics with events since a time that match a pattern, as `TopicLog` does."""
        if pattern.match is MatchPolicy.EXACT:
            return {RoutingKey(pattern.uri): NEVER}
        found: dict[RoutingKey, datetime] = {}
        until = attr(UNTIL)  # DynamoDB passes over the others, but reads them
        is_later = None if since == LONG_AGO else until.not_exists() | until.gte(milliseconds(since))
        begins = attr("sk").begins_with(topic_sort_key(RoutingKey(pattern.literal_prefix)))
        keys = [_topic_key(realm, topic) for topic in named if pattern.matches(topic)]
        self.spend(NAMED * len(keys))  # before the reads, whether these topics exist or not
        recent = self._query(attr("pk").eq(topics_partition(realm)) & begins, cost=TOPICS_PAGE, where=is_later)
        for item in chain(recent, self.table.get_all(keys)):
            self.spend(TOPIC)
            if pattern.matches(topic_of(item)):
                found[topic_of(item)] = moment(item[UNTIL]) if UNTIL in item else NEVER
        return found

    def retained(
        self, realm: ExchangeName, pattern: TopicPattern, *, after: RoutingKey | None = None
    ) -> Iterator[LoggedEvent]:
        """Yield the retained events that `TopicLog` has, topic by topic."""
        if pattern.match is MatchPolicy.EXACT:
            return self.retained_of(realm, [RoutingKey(pattern.uri)])
        prefix = pattern.literal_prefix
        place = attr("sk").between(topic_sort_key(after or RoutingKey(prefix)), topic_sort_key(last_topic(prefix)))
        parts = [attr("pk").eq(key["pk"]) & place for key in retained_keys(realm, RoutingKey(prefix))]
        events = map(self._spent_for, merge(*map(self._query, parts), key=itemgetter("sk")))
        return (event for event in events if event.topic != after)

    def retained_of(self, realm: ExchangeName, topics: Iterable[RoutingKey]) -> Iterator[LoggedEvent]:
        """Yield the retained events of topics."""
        keys = [key for topic in topics for key in retained_keys(realm, topic)]
        self.spend(QUERY + NAMED * len(keys))
        return map(self._spent_for, self.table.get_all(keys))

    def rows_after(self, realm: ExchangeName, number: int, *, now: datetime) -> Iterator[LoggedEvent]:
        """Yield the events of the last 30 minutes that carry a log row with a greater id, in the order of the ids."""
        items = merge(*(self._rows(one, number) for one in _recent_rows(realm, now)), key=itemgetter("sk"))
        return (event for event in map(self._spent_for, items) if now - event.at <= ROWS_KEPT_FOR)

    def delete(self, realm: ExchangeName, *, now: Callable[[], datetime], until: datetime) -> bool:
        """Delete all events and topics of a realm; return False if `until` comes before all of them are deleted."""

        def is_empty(partition: str) -> bool:
            return self.table.delete_all(attr("pk").eq(partition), is_over=lambda: now() >= until)

        topics = self.every_topic(realm)
        while some := list(islice(topics, TOPICS_AT_ONCE)):
            if not all(self.parallel_map(lambda topic: is_empty(log_partition(realm, topic)), some)):
                return False
            # Last: they lead to the events.
            self.table.write_all(Delete(_topic_key(realm, topic)) for topic in some)
        retained = [key["pk"] for key in retained_keys(realm, RoutingKey(""))]
        return all(map(is_empty, [*retained, *_recent_rows(realm, now())]))

    def _rows(self, partition: str, number: int) -> Iterator[Item]:
        return self._query(attr("pk").eq(partition) & attr("sk").gt(row_sort_key(max(number, 0))), Limit=ROWS_AT_ONCE)

    def _writes(self, realm: ExchangeName, event: LoggedEvent, live: LiveSettings) -> Iterator[Put | Delete]:
        document, age = stored_event(event), retention_of(event.topic, live.rules, otherwise=live.retention).age
        expiry = {} if age is None else ttl(event.at + age + TTL_ROOM)
        yield Put(log_key(realm, event.topic, event.sequence or 0) | document | expiry)
        row = row_of(event) if live.arvados and is_logged(event) else None
        if row is not None:
            yield Put(row_key(realm, event.at, row.id) | document | ttl(event.at + ROWS_KEPT_FOR + TTL_ROOM))
        # The first event may be that of a new realm, which has the name of a deleted one.
        if self._known.get(_known_as(realm, event, live), LONG_AGO) < event.logged_at or event.sequence == 1:
            until, age = event.logged_at + COVERED, _topic_age(event, live)
            expiry = {} if age is None else ttl(until + age + TTL_ROOM)
            yield Put(_topic_key(realm, event.topic) | {UNTIL: milliseconds(until)} | expiry)
        if event.is_retained and is_logged(event):
            for_all, for_some = retained_keys(realm, event.topic)
            is_for_all = replace(event.audience, excluded_publisher=None) == UNRESTRICTED
            if event.is_removal:
                yield from map(Delete, [for_all, for_some] if is_for_all else [for_some])
            else:
                yield Put((for_all if is_for_all else for_some) | document)
        yield from map(Delete, _evicted(realm, event, live))

    def remember(self, realm: ExchangeName, events: Iterable[LoggedEvent], live: LiveSettings) -> None:
        """Remember the times until which the items of the events' topics need no other write."""
        if len(self._known) > KNOWN_TOPICS:
            self._known.clear()
        for event in events:
            key = _known_as(realm, event, live)
            if self._known.get(key, LONG_AGO) < event.logged_at:
                self._known[key] = event.logged_at + COVERED / 2

    def spend(self, cost: int) -> None:
        """Add a cost to the request. Raises `PastTooLarge` and `ReadsBusy`."""
        if self.budget is not None:
            self.budget.spend(cost)

    def _spent_for(self, item: Item) -> LoggedEvent:
        event, cost = event_with_cost(item)
        self.spend(cost)
        return event

    def _query(self, condition: Expression, *, cost: int = QUERY, **options: Any) -> Iterator[Item]:  # noqa: ANN401
        """Yield the items of `pages` with these options; each page after the first one costs `cost`."""
        for number, page in enumerate(self.table.pages(condition, **options)):
            self.spend(cost if number else QUERY)
            yield from page


def _recent_rows(realm: ExchangeName, now: datetime) -> Sequence[str]:
    # The clock of SQS, which gives the times of events, may be a little ahead of ours.
    return [rows_partition(realm, now + ROWS_OF_A_PARTITION - age) for age in ROW_AGES]


def _key(write: Put | Delete) -> Hashable:
    key = write.item if isinstance(write, Put) else write.key
    return key["pk"], key["sk"]


def _topic_key(realm: ExchangeName, topic: RoutingKey) -> Item:
    return {"pk": topics_partition(realm), "sk": topic_sort_key(topic)}


def _topic_age(event: LoggedEvent, live: LiveSettings) -> timedelta | None:
    """Return the longest age of the events of a topic: its item leads to those of an earlier retention, too."""
    return live.longest_age if live.earlier else retention_of(event.topic, live.rules, otherwise=live.retention).age


def _known_as(realm: ExchangeName, event: LoggedEvent, live: LiveSettings) -> Hashable:
    return realm, event.topic, _topic_age(event, live)  # its item's TTL


def _evicted(realm: ExchangeName, event: LoggedEvent, live: LiveSettings) -> Iterator[Item]:
    """Yield the key of the event to delete from a log that is limited only by count; TTL empties other logs."""
    retention = retention_of(event.topic, live.rules, otherwise=live.retention)
    if retention.age is None and retention.count is not None:
        number = (event.sequence or 0) - retention.count - KEPT_BEHIND
        if number > 0:
            yield log_key(realm, event.topic, number)
