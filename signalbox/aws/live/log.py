"""The logs of topics in the table `Live`: an item for each event, and beside them what is there of each topic.

An event costs a write unit for each KB that it has when compressed; a topic's first event one more, and an event that
is to be retained as much again.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from boto3.dynamodb.conditions import Key

from signalbox.aws.live.items import (
    log_key,
    log_partition,
    number_key,
    retained_partition,
    topic_of,
    topic_sort_key,
    topics_partition,
)
from signalbox.aws.shared.dynamodb import Item, ItemBusy, every_item
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.routing_ports import ParallelMap, serial_map
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.event_documents import event_document, event_of, text_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.retention import retention_of
from signalbox.live.log.selection import is_logged
from signalbox.live.wamp.audience import EVERYBODY
from signalbox.live.wamp.patterns import Match, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import WriteRequestOutputTypeDef

MAXIMUM_WRITES = 25  # DynamoDB, BatchWriteItem
TRIES = 5  # DynamoDB may take some of the writes only
COMPRESSED_FROM = 1_000  # characters; below that an item costs one unit anyway
KNOWN_TOPICS = 100_000  # of which a router remembers that they are in the table
TTL_ROOM = timedelta(hours=1)
# Events that nobody may ask for any more, and who has just subscribed may have to be told yet.
KEPT_BEHIND = 1_000

EVENT, TEXT = "event", "text"


@dataclass(slots=True)
class DynamoTopicLog:
    """`TopicLog` and `EventLog`."""

    table: "Table"
    parallel_map: ParallelMap = serial_map
    _known: dict[tuple[ExchangeName, RoutingKey], None] = field(default_factory=dict)

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:
        """Add events to the logs of their topics; one that is there already stays as it is.

        Raises `ItemBusy` when DynamoDB does not take all of them: some may be there.
        """
        items = {(item["pk"], item["sk"]): item for item in self._items(realm, events, live)}
        puts: list[Any] = [{"PutRequest": {"Item": item}} for item in items.values()]
        puts += [{"DeleteRequest": {"Key": key}} for event in events for key in _pushed_out(realm, event, live)]
        calls = [puts[start : start + MAXIMUM_WRITES] for start in range(0, len(puts), MAXIMUM_WRITES)]
        for _ in self.parallel_map(self._write, calls):
            pass
        self._remember(realm, events)

    def events(self, realm: ExchangeName, topic: RoutingKey, *, live: LiveSettings, now: datetime) -> list[LoggedEvent]:
        """Return the events of a topic that are kept, in their order: no less than all that were appended before."""
        return self.back_to(realm, topic, None, live=live, now=now)

    def back_to(
        self, realm: ExchangeName, topic: RoutingKey, sequence: int | None, *, live: LiveSettings, now: datetime
    ) -> list[LoggedEvent]:
        """Return what `events` does, and all that came from a number on, whether it is kept or not."""
        retention = retention_of(topic, live.rules, otherwise=live.retention)
        found: list[LoggedEvent] = []
        kept = 0
        for item in self._newest_first(log_partition(realm, topic), limit=retention.count):
            event = _event(item)
            is_old = kept == retention.count or (retention.age is not None and now - event.at > retention.age)
            is_behind = sequence is not None and (event.sequence or 0) >= sequence
            if is_old and not is_behind:
                break
            if is_logged(event) or is_behind:
                found.append(event)
            kept += is_logged(event) and not is_old
        return found[::-1]

    def every_topic(self, realm: ExchangeName) -> Iterator[RoutingKey]:
        """Yield all topics of a realm that ever had an event, by name."""
        return (topic_of(item) for item in self._beginning(topics_partition(realm), ""))

    def behind(self, realm: ExchangeName, topic: RoutingKey, sequence: int) -> Iterator[LoggedEvent]:
        """Yield the events of a topic behind a number, in their order, as long as they are in the table."""
        condition = Key("pk").eq(log_partition(realm, topic)) & Key("sk").gt(number_key(sequence))
        return map(_event, every_item(self.table.query, {"KeyConditionExpression": condition, "ConsistentRead": True}))

    def topics(self, realm: ExchangeName, pattern: TopicPattern) -> list[RoutingKey]:
        """Return the topics with events that a pattern matches."""
        if pattern.match is Match.EXACT:
            return [RoutingKey(pattern.uri)]
        found = (topic_of(item) for item in self._beginning(topics_partition(realm), pattern.beginning))
        return [topic for topic in found if pattern.matches(topic)]

    def retained(self, realm: ExchangeName, pattern: TopicPattern) -> list[LoggedEvent]:
        """Return the latest events that were to be retained: of each topic that of all, and that of some beside it."""
        partitions = [retained_partition(realm, for_everybody=one) for one in (True, False)]
        found = (_event(item) for partition in partitions for item in self._beginning(partition, pattern.beginning))
        matching = (event for event in found if pattern.matches(event.topic))
        return sorted(matching, key=lambda event: (event.at, event.sequence or 0))

    def _items(self, realm: ExchangeName, events: Sequence[LoggedEvent], live: LiveSettings) -> Iterator[Item]:
        for event in events:
            document = _compressed(event)
            age = retention_of(event.topic, live.rules, otherwise=live.retention).age
            expires = {} if age is None else {"expires_at": round((event.at + age + TTL_ROOM).timestamp())}
            yield log_key(realm, event.topic, event.sequence or 0) | document | expires
            if (realm, event.topic) not in self._known:
                yield {"pk": topics_partition(realm), "sk": topic_sort_key(event.topic)}
            if event.is_retained and is_logged(event):
                partition = retained_partition(realm, for_everybody=_is_for_everybody(event))
                yield {"pk": partition, "sk": topic_sort_key(event.topic)} | document

    def _remember(self, realm: ExchangeName, events: Iterable[LoggedEvent]) -> None:
        if len(self._known) > KNOWN_TOPICS:
            self._known.clear()
        self._known.update(dict.fromkeys((realm, event.topic) for event in events))

    def _write(self, requests: "Sequence[WriteRequestOutputTypeDef]") -> None:
        # The client and not the table: only the former may be shared by threads.
        client, name = self.table.meta.client, self.table.name
        left: Any = requests
        for _ in range(TRIES):
            left = client.batch_write_item(RequestItems={name: left})["UnprocessedItems"].get(name)
            if not left:
                return
        raise ItemBusy(f"table {name!r} did not take {len(left)} writes")

    def _newest_first(self, partition: str, *, limit: int | None) -> Iterator[Item]:
        query = {"KeyConditionExpression": Key("pk").eq(partition), "ConsistentRead": True, "ScanIndexForward": False}
        return every_item(self.table.query, query if limit is None else {**query, "Limit": limit})

    def _beginning(self, partition: str, text: str) -> Iterator[Item]:
        """Yield what is there of the topics that begin with a text, in their order."""
        condition = Key("pk").eq(partition) & Key("sk").begins_with(topic_sort_key(RoutingKey(text)))
        return every_item(self.table.query, {"KeyConditionExpression": condition, "ConsistentRead": True})


def _pushed_out(realm: ExchangeName, event: LoggedEvent, live: LiveSettings) -> Iterator[Item]:
    """Yield the key of what an event pushes out of a log that forgets by number alone; others forget by time."""
    retention = retention_of(event.topic, live.rules, otherwise=live.retention)
    if retention.age is None and retention.count is not None:
        number = (event.sequence or 0) - retention.count - KEPT_BEHIND
        if number > 0:
            yield log_key(realm, event.topic, number)


def _is_for_everybody(event: LoggedEvent) -> bool:
    return replace(event.audience, excluded_publisher=None) == EVERYBODY


def _compressed(event: LoggedEvent) -> Item:
    text = text_of(event_document(event))
    if len(text) < COMPRESSED_FROM:
        return {TEXT: text}
    return {EVENT: zlib.compress(text.encode(errors="surrogatepass"))}


def _event(item: Item) -> LoggedEvent:
    text = item.get(TEXT) or zlib.decompress(bytes(item[EVENT])).decode(errors="surrogatepass")
    return event_of(json.loads(text))
