"""A realm for Arvados' clients in memory: rows are published, frames are processed, and outboxes are delivered."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from signalbox.exchange.model.records import LiveSettings, OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.arvados.cluster import ClusterUser
from signalbox.live.identity.tokens import TokenProblem
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.state import Admitted, ConnectionId, FrameId, Session, Signal, opened
from signalbox.live.outbox.decisions import OutboxState
from signalbox.live.outbox.items import EventBatch, ItemId, OutboxItem, SubscriptionEvent
from signalbox.live.outbox.results import BatchResult
from signalbox.live.outbox.snapshots import ConnectionSnapshot, Owner, SnapshotRequest
from signalbox.live.outbox.writer import OutboxWriter, ReceivedItem
from signalbox.live.rights.grants import NO_RIGHTS
from signalbox.live.session.admission import AdmissionService
from signalbox.live.session.connection import Refusal
from signalbox.live.session.inbox import frame_body, signal_body
from signalbox.live.session.inbox_processor import Arrival
from signalbox.live.wamp.messages import Payload, PublicationId
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import UserName
from tests.fakes.live import REALM, MemoryLive

CONNECTION = ConnectionId("c1")
TOKEN = "v2/source/source-secret"
CREATED, UPDATED = [["event_type", "in", ["create"]]], [["event_type", "in", ["update"]]]


@dataclass
class ArvadosStage:
    """A realm of Arvados' clients, whose users may read the topics `trial…`; times pass with every row."""

    world: MemoryLive = field(default_factory=MemoryLive)
    states: dict[ConnectionId, OutboxState] = field(default_factory=dict)
    delivered: dict[ConnectionId, int] = field(default_factory=dict)
    shown: dict[ConnectionId, int] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)
    frames: int = 0
    published: int = 0
    cluster: dict[tuple[str, str], ClusterUser | TokenProblem] = field(default_factory=dict)
    """The users of Arvados clusters, by the URL of the API and the token."""

    def __post_init__(self) -> None:
        self.world.declare(LiveSettings(order_by=OrderBy.EXCHANGE, arvados=True))
        self.world.exchanges.arvados = REALM

    # --- connections

    def admit(self, token: str = TOKEN, connection: ConnectionId = CONNECTION) -> Session | Refusal:
        world = self.world
        service = AdmissionService(
            world.exchanges.arvados_realm, world.accounts, world.tokens, self, lambda: next(world.numbers)
        )
        return service.admit(opened(connection, now=world.moment), token)

    def find(self, api: str, token: str) -> ClusterUser | TokenProblem:
        """Return the user of a token in the memory's clusters."""
        return self.cluster.get((api, token), TokenProblem.CLUSTER)

    def connect(self, token: str = TOKEN, connection: ConnectionId = CONNECTION) -> None:
        session = self.admit(token, connection)
        assert isinstance(session, Session), session
        assert self.world.sessions.open(session)
        self.notify(Admitted(), connection)

    def notify(self, signal: Signal, connection: ConnectionId = CONNECTION) -> None:
        self.receive(signal_body(signal), connection=connection)

    def say(self, text: str, connection: ConnectionId = CONNECTION) -> None:
        self.receive(frame_body(text), connection=connection)

    def subscribe(
        self, filters: object = None, last_log_id: int | None = None, connection: ConnectionId = CONNECTION
    ) -> None:
        fields = {"method": "subscribe", "filters": filters, "last_log_id": last_log_id}
        self.say(json.dumps({name: value for name, value in fields.items() if value is not None}), connection)

    def unsubscribe(self, filters: object = None) -> None:
        self.say(json.dumps({"method": "unsubscribe", "filters": filters}))

    def receive(self, *bodies: str, connection: ConnectionId = CONNECTION) -> None:
        arrivals = []
        for body in bodies:
            self.frames += 1
            arrivals.append(Arrival(FrameId(f"f{self.frames}"), connection, body, self.world.moment))
        assert len(list(self.world.processor(connection).process(arrivals))) == len(bodies)

    # --- rows

    def publish(self, number: int, event_type: str = "create", topic: str = "trial.a", **changed: Any) -> None:
        """Log a row, and put it into the outboxes of its subscribers, as the router does."""
        self.log(number, event_type, topic, **changed)
        self.route()

    def log(self, number: int, event_type: str = "create", topic: str = "trial.a", **changed: Any) -> LoggedEvent:
        self.world.moment += timedelta(milliseconds=1)
        self.published += 1
        self.sequences[topic] = self.sequences.get(topic, 0) + 1
        row = {"id": number, "event_type": event_type, "object_uuid": f"zzzzz-{number}"}
        event = LoggedEvent(
            PublicationId(self.published),
            RoutingKey(topic),
            self.world.moment,
            Payload((row,)),
            sequence=self.sequences[topic],
        )
        logged = replace(event, **changed)
        self.world.log.append(REALM, logged)
        self._logged = logged
        return logged

    def route(self) -> None:
        """Put the last logged event into the outboxes of its subscribers."""
        event = self._logged
        for subscriber in self.world.subscribers.of_topic(REALM, event.topic):
            if event.audience.admits(subscriber.listener):
                events = (SubscriptionEvent(subscriber.pattern, event),)
                user = UserName(subscriber.listener.authid)
                batch = EventBatch(ItemId(f"events {event.publication}"), REALM, user, events)
                self.world.outboxes.put(subscriber.connection, [batch])

    # --- the writer

    def deliver(
        self,
        connection: ConnectionId = CONNECTION,
        *,
        count: int | None = None,
        seconds: float = 60,
        waited: timedelta = timedelta(0),
    ) -> BatchResult | None:
        """Post the next items of an outbox in one batch, or all of them; they have waited for a time."""
        waiting = self.waiting(connection)[:count]
        if not waiting:
            return None
        incoming = [ReceivedItem(MessageId(one.item_id), one, self.world.moment - waited) for one in waiting]
        until = self.world.moment + timedelta(seconds=seconds)
        writer = OutboxWriter(self, self.world.log, self.world.connections, self.world.now)
        result = writer.deliver(connection, incoming, until=until)
        first, left = self.delivered.get(connection, 0), [one for one in waiting if one.item_id in result.not_done]
        done = [one for one in waiting if one not in left]
        self.world.outboxes.items[connection][first : first + len(waiting)] = [*done, *left]
        self.delivered[connection] = first + len(done)
        return result

    def waiting(self, connection: ConnectionId = CONNECTION) -> Sequence[OutboxItem]:
        return self.world.outboxes.items[connection][self.delivered.get(connection, 0) :]

    def messages(self, connection: ConnectionId = CONNECTION) -> list[Any]:
        """Deliver the outbox; return the messages since the last call."""
        self.deliver(connection)
        return self.new(connection)

    def new(self, connection: ConnectionId = CONNECTION) -> list[Any]:
        posted = self.world.connections.posted[connection]
        first, self.shown[connection] = self.shown.get(connection, 0), len(posted)
        return [json.loads(text) for text in posted[first:]]

    def ids(self, connection: ConnectionId = CONNECTION) -> list[int]:
        """Deliver the outbox; return the ids of the rows since the last call."""
        return [message["id"] for message in self.messages(connection) if "id" in message]

    def recent(self, requests: Sequence[SnapshotRequest]) -> Mapping[ConnectionId, ConnectionSnapshot]:
        return {one.connection: self.read(one.connection, owner=one.owner) for one in requests}

    def read(self, connection: ConnectionId, *, owner: Owner | None) -> ConnectionSnapshot:
        stored = self.world.sessions.find(connection)
        session = stored.session if stored else None
        rights = NO_RIGHTS
        if session is not None and session.identity is not None:
            user = UserName(session.identity.authid)
            rights = self.world.accounts.access(REALM, user, now=self.world.moment, token=session.token).rights
        return ConnectionSnapshot(session, self.states.get(connection, OutboxState()), rights, LiveSettings())

    def save(
        self, connection: ConnectionId, outbox: OutboxState, *, session: Session | None, saved: OutboxState
    ) -> None:
        self.states[connection] = outbox

    def newest(self, realm: str, topic: RoutingKey) -> int:
        return self.sequences.get(topic, 0)

    def now(self) -> datetime:
        return self.world.moment


def filters_of(stage: ArvadosStage, connection: ConnectionId = CONNECTION) -> list[str | None]:
    """Return the filters of a session's subscriptions."""
    stored = stage.world.sessions.find(connection)
    assert stored is not None
    return [one.filters for one in stored.session.log_subscriptions]
