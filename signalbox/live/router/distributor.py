"""Distribution of a realm's publications: append to the logs first, then send to the subscribers' outboxes."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.messages.publications import Publication, attempt
from signalbox.exchange.model.events import ADMINISTRATOR
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.copy_router import PART_COPIES, parts
from signalbox.exchange.routing.limits import Allowance, Share
from signalbox.exchange.routing.ports import Delivery, Distribution, HeadChange, SentCopies
from signalbox.exchange.routing.ports import NumberedPublication as ToConnections
from signalbox.live.log.documents import event_document, json_text
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.items import (
    EventBatch,
    ItemId,
    OutboxMessage,
    Reply,
    SubscriptionEvent,
    event_batch_body,
    item_body,
)
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.decoding import kilobytes, logged_event, publication_metadata
from signalbox.live.router.directory import SubscriberLookup
from signalbox.live.router.publication_metadata import AcknowledgementTarget
from signalbox.live.router.write_limits import ABOVE_LIMIT
from signalbox.live.wamp.audience import UNRESTRICTED
from signalbox.live.wamp.codec import serialize, size_bytes
from signalbox.live.wamp.messages import PublicationId, Published
from signalbox.messages import MessageId
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName, UserName

# From this delay on, an event may be logged after sessions that began after its publication.
LONG_DELAY, MILLISECOND = timedelta(seconds=1), timedelta(milliseconds=1)
MAXIMUM_BATCH_BYTES = 200_000  # so that a call sends several, and a partly posted batch is soon repeated


class EventLog(Protocol):
    """The logs of topics, as the router writes them."""

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:
        """Append events to the logs of their topics. Idempotent."""

    def append_with(
        self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings, heads: Sequence[HeadChange]
    ) -> bool:
        """Store `heads` and append events to the logs of their topics; return whether it was done.

        If not, no event is appended.
        """


class SubscriberDirectory(Protocol):
    """The directory of current subscribers."""

    def lookup(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        """Return the lookup of current subscribers by topic."""

    def known(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        """Return the lookup of the subscribers that were found within the last second, without a read."""


class OutboxSender(Protocol):
    """Sends items to the outboxes of several connections."""

    def send(self, messages: Sequence[OutboxMessage]) -> Collection[int]:
        """Send messages in no particular order; return the indexes of those that failed."""


@dataclass(frozen=True, slots=True)
class _DecodedEvent:
    """An event of the router's batch, with its serialized form for subscribers."""

    message_id: MessageId
    event: LoggedEvent
    text: str
    attempt: int


@dataclass(frozen=True, slots=True)
class _EventCopy:
    """A `SentCopy` of an event for a subscriber."""

    decoded: _DecodedEvent
    subscriber: Subscriber

    @property
    def message_id(self) -> MessageId:
        return self.decoded.message_id

    @property
    def destination(self) -> str:
        return self.subscriber.connection

    @property
    def attempt(self) -> int:
        return self.decoded.attempt


@dataclass(slots=True)
class _GrowingBatch:
    """An `EventBatch` under construction."""

    subscriber: Subscriber
    copies: list[_EventCopy] = field(default_factory=list)
    size_bytes: int = 0
    is_sent: bool = False

    def ends_with(self, event: _DecodedEvent) -> bool:
        """Return whether this event is the last of the batch, for another pattern; the batch has its text once."""
        return bool(self.copies) and self.copies[-1].decoded is event


@dataclass(frozen=True, slots=True)
class Distributor:
    """Implementation of `LiveDelivery`.

    It appends each event to the log before it looks up subscribers. A subscriber that is added after the lookup
    therefore finds the event in the log. While it looks them up, it sends to those of the last second, unless the order
    holds across the batch's topics: what it sends to one that has gone since is not posted. A write to the log may take
    `longest_write`, the time-out of the function. When it `is_late`, the rest stays for the next attempt, which sends
    nothing of what is in `sent` again.
    """

    log: EventLog
    directory: SubscriberDirectory
    outboxes: OutboxSender
    parallel_map: ParallelMap = serial_map
    now: Callable[[], datetime] = field(kw_only=True)
    longest_write: timedelta = field(kw_only=True)
    sent: SentCopies = field(kw_only=True)
    allowance: Allowance = field(kw_only=True)
    is_late: Callable[[], bool] = field(kw_only=True)
    part_copies: int = PART_COPIES

    def refused(self, exchange: ExchangeRecord, publications: Sequence[Publication]) -> Mapping[MessageId, str]:
        """Return the publications by SQS of users who have published as much as one may, each with the reason."""
        refused = [one for one in publications if not self._admits(exchange, one)]
        return {one.message.message_id: f"publisher {one.publisher!r}: {ABOVE_LIMIT}" for one in refused}

    def _admits(self, exchange: ExchangeRecord, publication: Publication) -> bool:
        # Those of sessions were counted there. Administrators, and programs without a user, have no limit.
        message, publisher, at = publication.message, publication.publisher, publication.message.sent_at
        if publication.notes is not None or publisher in (ADMINISTRATOR, message.system_attributes.get("SenderId")):
            return True
        # What waited in an exchange that was not live yet, and so was not counted, is older than the change.
        is_counted = attempt(message) > 1 and not (exchange.changed_at and at < exchange.changed_at)
        return self.allowance.admits([Share(publisher)], 0 if is_counted else kilobytes(publication), at=at)

    def store(self, exchange: ExchangeRecord, published: Sequence[ToConnections]) -> Delivery:
        """Append publications to the logs; return their distribution in their order."""
        events = self._decoded(published)
        if events and exchange.live is not None:
            self.log.append(exchange.name, [one.event for one in events], live=exchange.live)
        return self._delivery(exchange, events)

    def store_with(
        self, exchange: ExchangeRecord, published: Sequence[ToConnections], heads: Sequence[HeadChange]
    ) -> Delivery | None:
        """Store `heads` and append publications; return None if no publication was appended."""
        events = self._decoded(published)
        logged = [one.event for one in events]
        if exchange.live is None or not self.log.append_with(exchange.name, logged, live=exchange.live, heads=heads):
            return None
        return self._delivery(exchange, events)

    def _decoded(self, published: Sequence[ToConnections]) -> list[_DecodedEvent]:
        now = self.now()
        return [_decoded(one, now, longest_write=self.longest_write) for one in published]

    def _delivery(self, exchange: ExchangeRecord, events: Sequence[_DecodedEvent]) -> Delivery:
        if (live := exchange.live) is None or not events:
            return Distribution
        return lambda: self._deliver(events, exchange.name, live.order_by)

    def _deliver(self, events: Sequence[_DecodedEvent], realm: ExchangeName, order_by: OrderBy) -> Distribution:
        topics = {one.event.topic for one in events}
        # A connection may be known as a subscriber of some topics only, whose events would overtake the others.
        is_early = order_by is OrderBy.TOPIC or len(topics) == 1
        known = self.directory.known(realm, topics) if is_early else lambda _: ()
        batches, found = self._batches(events, known), list[SubscriberLookup]()
        tasks: list[Callable[[], None]] = [lambda: found.append(self.directory.lookup(realm, topics))]
        if batches:
            tasks.append(lambda: self._send(batches, realm))
        for _ in self.parallel_map(lambda task: task(), tasks):
            pass
        (current,) = found
        added = {topic: _added(current(topic), known(topic)) for topic in topics}
        others = self._batches(events, added.__getitem__)
        self._send(others, realm)
        return _distribution([*batches, *others])

    def _batches(self, events: Iterable[_DecodedEvent], subscribers_of: SubscriberLookup) -> list[_GrowingBatch]:
        copies = [
            _EventCopy(one, subscriber)
            for one in events
            for subscriber in subscribers_of(one.event.topic)
            if one.event.audience.admits(subscriber.listener)
        ]
        return _batches(self.sent.left(copies))

    def publication_id(self, publication: Publication) -> int:
        """Return the publication id that connections and logs have."""
        return publication_metadata(publication).publication

    def acknowledge(self, publications: Sequence[Publication]) -> Collection[MessageId]:
        """Send PUBLISHED to the publishers that requested it; return the messages to redeliver."""
        published = [
            (one.message.message_id, publication_metadata(one)) for one in publications if one.notes is not None
        ]
        replies = [
            (message_id, _acknowledgement(metadata.publication, metadata.acknowledge_to))
            for message_id, metadata in published
            if metadata.acknowledge_to
        ]
        failed = self.outboxes.send([reply for _, reply in replies])
        return {replies[index][0] for index in failed}

    def _send(self, batches: Sequence[_GrowingBatch], realm: ExchangeName) -> None:
        """Send batches in parts, at least one; those of one connection in order, one call after the other."""
        waiting: dict[ConnectionId, list[_GrowingBatch]] = {}
        for batch in batches:
            waiting.setdefault(batch.subscriber.connection, []).append(batch)
        has_begun = False
        while waiting:
            for part in parts([line[0] for line in waiting.values()], most=self.part_copies):
                if has_begun and self.is_late():
                    return
                has_begun = True
                failed = self.outboxes.send([_outbox_message(one, realm) for one in part])
                for index, one in enumerate(part):
                    one.is_sent = index not in failed
            waiting = {name: rest for name, (head, *rest) in waiting.items() if head.is_sent and rest}


def _decoded(published: ToConnections, now: datetime, *, longest_write: timedelta) -> _DecodedEvent:
    metadata = publication_metadata(published.publication)
    event = logged_event(published.publication, metadata, sequence=published.sequence)
    delay = now - event.at
    if delay >= LONG_DELAY:
        event = replace(event, delay_ms=(delay + longest_write) // MILLISECOND)
    # Subscribers must not see the audience, nor the event's position among all publications.
    text = json_text(event_document(replace(event, audience=UNRESTRICTED, sqs_sequence=None, delay_ms=None)))
    message = published.publication.message
    return _DecodedEvent(message.message_id, event, text, attempt(message))


def _batches(copies: Iterable[_EventCopy]) -> list[_GrowingBatch]:
    """Group the copies of events by connection, in order, into batches of limited size."""
    batches: list[_GrowingBatch] = []
    growing: dict[ConnectionId, _GrowingBatch] = {}
    for one in copies:
        connection, size = one.subscriber.connection, size_bytes(one.decoded.text)
        batch = growing.get(connection)
        has_text = batch is not None and batch.ends_with(one.decoded)
        if batch is None or not (has_text or batch.size_bytes + size <= MAXIMUM_BATCH_BYTES):
            batch = growing[connection] = _GrowingBatch(one.subscriber)
            batches.append(batch)
        batch.size_bytes += size_bytes(one.subscriber.pattern.uri) + (0 if has_text else size)
        batch.copies.append(one)
    return batches


def _distribution(batches: Sequence[_GrowingBatch]) -> Distribution:
    """Return the outcome: an event was sent to a connection if it was for all of the connection's patterns."""
    left = {(one.message_id, one.destination) for batch in batches if not batch.is_sent for one in batch.copies}
    sent = [one for batch in batches if batch.is_sent for one in batch.copies]
    return Distribution(
        {message_id for message_id, _ in left}, [one for one in sent if (one.message_id, one.destination) not in left]
    )


def _added(current: Iterable[Subscriber], known: Iterable[Subscriber]) -> list[Subscriber]:
    subscriptions = {(one.connection, one.pattern) for one in known}
    return [one for one in current if (one.connection, one.pattern) not in subscriptions]


def _outbox_message(batch: _GrowingBatch, realm: ExchangeName) -> OutboxMessage:
    subscriber = batch.subscriber
    events = tuple(SubscriptionEvent(one.subscriber.pattern, one.decoded.event) for one in batch.copies)
    # As JSON: a topic may have line feeds, and must not look like other events.
    content = json_text([[one.pattern.subscription_id, one.event.sequence, one.event.topic] for one in events])
    item_id = ItemId(hashlib.sha256(content.encode()).hexdigest())
    item = EventBatch(item_id, realm, UserName(subscriber.listener.authid), events)
    body = event_batch_body(item, [one.decoded.text for one in batch.copies])
    return OutboxMessage(subscriber.connection, item_id, body)


def _acknowledgement(publication: PublicationId, target: AcknowledgementTarget) -> OutboxMessage:
    item_id = ItemId(f"published {target.request} {publication}")
    message = serialize(Published(target.request, publication))
    return OutboxMessage(target.connection, item_id, item_body(Reply(item_id, message)))
