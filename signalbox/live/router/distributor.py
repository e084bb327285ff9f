"""Bringing what is published to a realm into the outboxes of its subscribers: logged first, and then told."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.records import Exchange, LiveSettings
from signalbox.exchange.model.routing_ports import NumberedPublication as ToConnections
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.event_documents import event_document, text_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.outbox.items import Addressed, Bundle, ItemId, Reply, bundle_text, item_text
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.router.decoding import arrived, noted
from signalbox.live.router.directory import Matching
from signalbox.live.router.publication_metadata import Awaited, Note
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.audience import EVERYBODY
from signalbox.live.wamp.codec import size_bytes, written
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

    def look(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Matching:
        """Return who is subscribed to topics now."""
        ...


@dataclass(frozen=True, slots=True)
class Posting:
    """Something for a connection's outbox, and the id by which the outbox knows whether it is there already."""

    connection: ConnectionId
    item_id: ItemId
    text: str


class OutboxSender(Protocol):
    """Puts items into many outboxes."""

    def send(self, postings: Sequence[Posting]) -> Collection[int]:
        """Put each into its connection's outbox; return the places of those that failed. Of none is known the order."""
        ...


@dataclass(frozen=True, slots=True)
class _Arrived:
    """An event of this batch, as subscribers get it."""

    message_id: MessageId
    note: Note
    event: LoggedEvent
    text: str


@dataclass(slots=True)
class _Bundled:
    """A bundle as it grows."""

    subscriber: Subscriber
    events: list[tuple[_Arrived, Addressed]] = field(default_factory=list)
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
        matching = self.directory.look(exchange.name, {one.event.topic for one in batch})
        return self._sent(_bundles(batch, matching), exchange.name)

    def acknowledge(self, publications: Sequence[Publication]) -> Collection[MessageId]:
        """Tell the publishers who wait for it that theirs are done; return the messages that must come again."""
        noted_ones = [(one.message.message_id, noted(one)) for one in publications if one.notes is not None]
        replies = [(one, _published(note.publication, note.awaited)) for one, note in noted_ones if note.awaited]
        failed = self.outboxes.send([posting for _, posting in replies])
        return {replies[place][0] for place in failed}

    def _sent(self, bundles: Sequence[_Bundled], realm: ExchangeName) -> set[MessageId]:
        """Send bundles, those of a connection one after the other."""
        failed: set[MessageId] = set()
        waiting: dict[ConnectionId, list[_Bundled]] = {}
        for bundle in bundles:
            waiting.setdefault(bundle.subscriber.connection, []).append(bundle)
        while waiting:
            heads = [line[0] for line in waiting.values()]
            for place in sorted(self.outboxes.send([_posting(one, realm) for one in heads])):
                line = waiting.pop(heads[place].subscriber.connection)
                failed |= {arrived.message_id for bundle in line for arrived, _ in bundle.events}
            waiting = {connection: line[1:] for connection, line in waiting.items() if line[1:]}
        return failed


def _arrived(published: ToConnections) -> _Arrived:
    note = noted(published.publication)
    event = arrived(published.publication, note, sequence=published.sequence)
    # Whom it is for, and what overtook what on the way here, is nobody else's business.
    text = text_of(event_document(replace(event, audience=EVERYBODY, place=None)))
    return _Arrived(published.publication.message.message_id, note, event, text)


def _bundles(batch: Iterable[_Arrived], matching: Matching) -> list[_Bundled]:
    """Return what each connection gets, in its order, in parts of which none is too large."""
    bundles: list[_Bundled] = []
    growing: dict[ConnectionId, _Bundled] = {}
    for one in batch:
        size = size_bytes(one.text)
        for subscriber in matching(one.event.topic):
            if not one.event.audience.admits(subscriber.listener):
                continue
            bundle = growing.get(subscriber.connection)
            if bundle is None or bundle.size + size > MAXIMUM_BUNDLE_BYTES:
                bundle = growing[subscriber.connection] = _Bundled(subscriber)
                bundles.append(bundle)
            bundle.events.append((one, Addressed(subscriber.pattern, one.event)))
            bundle.size += size
    return bundles


def _posting(bundled: _Bundled, realm: ExchangeName) -> Posting:
    connection = bundled.subscriber.connection
    addressed = tuple(one for _, one in bundled.events)
    told = "\n".join(f"{one.pattern.subscription_id} {one.event.sequence} {one.event.topic}" for one in addressed)
    item_id = ItemId(hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest())
    bundle = Bundle(item_id, realm, UserName(bundled.subscriber.listener.authid), addressed)
    return Posting(connection, item_id, bundle_text(bundle, [arrived.text for arrived, _ in bundled.events]))


def _published(publication: PublicationId, awaited: Awaited) -> Posting:
    item_id = ItemId(f"published {awaited.request} {publication}")
    message = written(Published(awaited.request, publication))
    return Posting(awaited.connection, item_id, item_text(Reply(item_id, message)))
