"""Bringing what is published to a realm into the outboxes of its subscribers: logged first, and then told."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.records import Exchange, LiveSettings
from signalbox.exchange.model.routing_ports import Published as ToConnections
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.event_documents import event_document, json_text
from signalbox.live.log.events import LoggedEvent
from signalbox.live.outbox.items import EventBatch, ItemId, Reply, SubscriptionEvent, event_batch_body, item_body
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.decoding import logged_event, publication_metadata
from signalbox.live.router.directory import SubscriberLookup
from signalbox.live.router.publication_metadata import AcknowledgementTarget, PublicationMetadata
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.audience import UNRESTRICTED
from signalbox.live.wamp.codec import serialize, size_bytes
from signalbox.live.wamp.messages import PublicationId, Published
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName

MAXIMUM_BUNDLE_BYTES = 200_000  # so that several go in a call, and one that is posted half is soon posted again


class EventLog(Protocol):
    """The logs of topics, as the router writes them."""

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:
        """Add events to the logs of their topics; one that is there already stays as it is."""
        ...


class SubscriberDirectory(Protocol):
    """Knows who is subscribed."""

    def lookup(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        """Return who is subscribed to topics now."""
        ...


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """Something for a connection's outbox, and the id by which the outbox knows whether it is there already."""

    connection: ConnectionId
    item_id: ItemId
    text: str


class OutboxSender(Protocol):
    """Puts items into many outboxes."""

    def send(self, postings: Sequence[OutboxMessage]) -> Collection[int]:
        """Put each into its connection's outbox; return the places of those that failed. Of none is known the order."""
        ...


@dataclass(frozen=True, slots=True)
class _DecodedEvent:
    """An event of this batch, as subscribers get it."""

    message_id: MessageId
    metadata: PublicationMetadata
    event: LoggedEvent
    text: str


@dataclass(slots=True)
class _GrowingBatch:
    """A bundle as it grows."""

    subscriber: Subscriber
    events: list[tuple[_DecodedEvent, SubscriptionEvent]] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Distributor:
    """`LiveDelivery`: an event stands in its log before anybody looks who is subscribed.

    So whoever is not seen there, because the subscription came later, finds it in the log.
    """

    log: EventLog
    directory: SubscriberDirectory
    outboxes: OutboxSender

    def deliver(self, exchange: Exchange, published: Sequence[ToConnections]) -> Collection[MessageId]:
        """Bring publications, in their order, to whoever is subscribed; return the messages that must come again."""
        if exchange.live is None or not published:
            return ()
        batch = [_arrived(one) for one in published]
        self.log.append(exchange.name, [one.event for one in batch], live=exchange.live)
        matching = self.directory.lookup(exchange.name, {one.event.topic for one in batch})
        return self._sent(_bundles(batch, matching), exchange.name)

    def acknowledge(self, publications: Sequence[Publication]) -> Collection[MessageId]:
        """Tell the publishers who wait for it that theirs are done; return the messages that must come again."""
        noted_ones = [
            (one.message.message_id, publication_metadata(one)) for one in publications if one.notes is not None
        ]
        replies = [
            (one, _published(note.publication, note.acknowledge_to)) for one, note in noted_ones if note.acknowledge_to
        ]
        failed = self.outboxes.send([posting for _, posting in replies])
        return {replies[place][0] for place in failed}

    def _sent(self, bundles: Sequence[_GrowingBatch], realm: ExchangeName) -> set[MessageId]:
        """Send bundles, those of a connection one after the other."""
        failed: set[MessageId] = set()
        waiting: dict[ConnectionId, list[_GrowingBatch]] = {}
        for bundle in bundles:
            waiting.setdefault(bundle.subscriber.connection, []).append(bundle)
        while waiting:
            heads = [line[0] for line in waiting.values()]
            for place in sorted(self.outboxes.send([_posting(one, realm) for one in heads])):
                line = waiting.pop(heads[place].subscriber.connection)
                failed |= {arrived.message_id for bundle in line for arrived, _ in bundle.events}
            waiting = {connection: line[1:] for connection, line in waiting.items() if line[1:]}
        return failed


def _arrived(published: ToConnections) -> _DecodedEvent:
    note = publication_metadata(published.publication)
    event = logged_event(published.publication, note, sequence=published.sequence)
    # Whom it is for, and what overtook what on the way here, is nobody else's business.
    text = json_text(event_document(replace(event, audience=UNRESTRICTED, sqs_sequence=None)))
    return _DecodedEvent(published.publication.message.message_id, note, event, text)


def _bundles(batch: Iterable[_DecodedEvent], matching: SubscriberLookup) -> list[_GrowingBatch]:
    """Return what each connection gets, in its order, in parts of which none is too large."""
    bundles: list[_GrowingBatch] = []
    growing: dict[ConnectionId, _GrowingBatch] = {}
    for one in batch:
        size = size_bytes(one.text)
        for subscriber in matching(one.event.topic):
            if not one.event.audience.admits(subscriber.listener):
                continue
            bundle = growing.get(subscriber.connection)
            if bundle is None or bundle.size + size > MAXIMUM_BUNDLE_BYTES:
                bundle = growing[subscriber.connection] = _GrowingBatch(subscriber)
                bundles.append(bundle)
            bundle.events.append((one, SubscriptionEvent(subscriber.pattern, one.event)))
            bundle.size += size
    return bundles


def _posting(bundled: _GrowingBatch, realm: ExchangeName) -> OutboxMessage:
    connection = bundled.subscriber.connection
    addressed = tuple(one for _, one in bundled.events)
    told = "\n".join(f"{one.pattern.subscription_id} {one.event.sequence} {one.event.topic}" for one in addressed)
    item_id = ItemId(hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest())
    bundle = EventBatch(item_id, realm, UserName(bundled.subscriber.listener.authid), addressed)
    return OutboxMessage(connection, item_id, event_batch_body(bundle, [arrived.text for arrived, _ in bundled.events]))


def _published(publication: PublicationId, awaited: AcknowledgementTarget) -> OutboxMessage:
    item_id = ItemId(f"published {awaited.request} {publication}")
    message = serialize(Published(awaited.request, publication))
    return OutboxMessage(awaited.connection, item_id, item_body(Reply(item_id, message)))
