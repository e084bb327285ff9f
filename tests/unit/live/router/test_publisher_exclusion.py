"""The specification's message sequence of publisher exclusion, from client messages to posted messages."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from signalbox.exchange.matching.graph import Routes
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.publications import TrustedSenders, publication, publisher_of, read_publication
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import NumberedPublication
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.state import ConnectionId, Session
from signalbox.live.outbox.decisions import OutboxState
from signalbox.live.outbox.items import parse_item
from signalbox.live.outbox.snapshots import ConnectionSnapshot, Owner, SnapshotRequest
from signalbox.live.outbox.writer import OutboxWriter, ReceivedItem
from signalbox.live.router.directory import SubscriberLookup
from signalbox.live.router.distributor import Distributor, OutboxMessage
from signalbox.live.wamp.codec import FORMATS
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right
from tests.fakes.allowances import MemoryAllowanceCounter
from tests.fakes.live import REALM, MemoryLive
from tests.unit.exchange.routing.naive_sqs import as_received
from tests.unit.exchange.routing.routing_world import MemorySentCopies
from tests.unit.live.session.conversation import FIRST, Client, published
from tests.unit.live.wamp.vectors import SEQUENCE

USER, SENDERS = UserName("subscriber"), TrustedSenders("AROACONTROL", "AROASESSION")
KINDS = {form.kind.__name__.upper(): code for code, form in FORMATS.items()}


@dataclass
class Realm:
    """A realm in memory: the ports of its router and of its writer, for one client."""

    live: MemoryLive = field(default_factory=MemoryLive)
    outbox: OutboxState = field(default_factory=OutboxState)

    def append(self, realm: ExchangeName, events: Sequence[LoggedEvent], *, live: LiveSettings) -> None:
        self.live.log.append(realm, *events)

    def lookup(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        return lambda topic: self.live.subscribers.of_topic(realm, topic)

    def known(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> SubscriberLookup:
        return lambda topic: ()

    def send(self, postings: Sequence[OutboxMessage]) -> Collection[int]:
        for posting in postings:
            self.live.outboxes.put(posting.connection, [parse_item(posting.text)])
        return ()

    def recent(self, requests: Sequence[SnapshotRequest]) -> Mapping[ConnectionId, ConnectionSnapshot]:
        return {one.connection: self.read(one.connection, owner=one.owner) for one in requests}

    def read(self, connection: ConnectionId, *, owner: Owner | None) -> ConnectionSnapshot:
        standing = self.live.accounts.access(REALM, USER, now=self.live.moment)
        assert standing.account is not None
        return ConnectionSnapshot(
            self.live.sessions.records[connection].session, self.outbox, standing.account.rights, standing.live
        )

    def save(
        self, connection: ConnectionId, outbox: OutboxState, *, session: Session | None, saved: OutboxState
    ) -> None:
        self.outbox = outbox

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        return 0

    def route(self) -> None:
        """Distribute the publications to outboxes."""
        exchange = self.live.exchanges.records[REALM]
        for number, sent in enumerate(published(self.live), start=1):
            message = as_received(sent.message, sender=SENDERS.session_id, sent_at=self.live.moment)
            envelope = read_publication(message, SENDERS)
            assert isinstance(envelope, MessageProperties)
            publisher = publisher_of(message, {}, SENDERS)
            routes = Routes((), by_alternate=False)
            said = publication(message, envelope, routes, publisher, SENDERS)
            delivery = Distributor(
                self,
                self,
                self,
                now=lambda: self.live.moment,
                longest_write=timedelta(),
                sent=MemorySentCopies(),
                allowance=MemoryAllowanceCounter().instance(),
                is_late=lambda: False,
            ).store(exchange, [NumberedPublication(said, number)])
            assert delivery().failed == set()

    def posted(self) -> list[Any]:
        """Post all items of the outbox in one batch; return all messages."""
        items = self.live.outboxes.items[FIRST]
        incoming = [ReceivedItem(MessageId(item.item_id), item, self.live.moment) for item in items]
        deliverer = OutboxWriter(self, self.live.log, self.live.connections, self.live.now)
        deliverer.deliver(FIRST, incoming, until=self.live.moment + timedelta(minutes=1))
        return [json.loads(text) for text in self.live.connections.posted[FIRST]]


def elements(parts: Mapping[str, Any]) -> list[Any]:
    """Return a message of the sequence as its array."""
    return [KINDS[parts["type"]], *(value for name, value in parts.items() if name != "type")]


def play(**options: object) -> list[Any]:
    """Return the messages to a client that sends the sequence's messages, with these options of PUBLISH."""
    realm = Realm()
    realm.live.grant(USER, Right.READ, Right.WRITE, pattern="com.myapp.")
    client = Client(realm.live).open().join(USER)
    for step in SEQUENCE:
        if step.by != "router":
            own = options if step.parts["type"] == "PUBLISH" else step.parts["options"]
            client.say(*elements({**step.parts, "options": own}))
    realm.route()
    _challenge, _welcome, *replies = realm.posted()
    return replies


def test_a_publisher_that_does_not_exclude_itself_receives_its_event() -> None:
    """Advanced profile, «Publisher Exclusion»; the ids of subscription and publication are the router's to choose."""
    (publish,) = (step.parts for step in SEQUENCE if step.parts["type"] == "PUBLISH")
    subscribed, event = (elements(step.parts) for step in SEQUENCE if step.by == "router")

    subscribed_reply, event_reply = play(**publish["options"])

    subscription, (number, details) = subscribed_reply[2], event_reply[2:4]
    assert subscribed_reply == [*subscribed[:2], subscription]
    assert event_reply == [event[0], subscription, number, details, event[4]]
    assert all(name.startswith("_") for name in details)  # the specification gives no details here


def test_a_publisher_is_excluded_by_default() -> None:
    (subscribed,) = play()

    assert subscribed[0] == KINDS["SUBSCRIBED"]
