"""Clients of a stage in memory: what a client sends is processed at once, and its outbox has the replies."""

import json
from dataclasses import dataclass, field
from typing import Any

from signalbox.exchange.messages.properties import LIVE, TOPIC
from signalbox.live.model.state import ConnectionId, FrameId, Signal, opened
from signalbox.live.outbox.items import BackfillRequest, CloseRequest, Reply
from signalbox.live.ports import SessionPorts
from signalbox.live.session.inbox import frame_body, signal_body
from signalbox.live.session.inbox_processor import Arrival, InboxProcessor
from signalbox.live.wamp.batches import RECORD_SEPARATOR, batch
from signalbox.messages import Message
from tests.fakes.live import REALM, MemoryLive

FIRST = ConnectionId("c1")
ROLES = {"subscriber": {"features": {"subscription_revocation": True}}, "publisher": {}, "caller": {}}


@dataclass
class Client:
    """A client; each message that it sends is processed at once."""

    world: MemoryLive
    connection: ConnectionId = FIRST
    frames: int = 0
    read: int = 0
    session: int = 0
    processor: InboxProcessor | None = None
    ports: SessionPorts | None = None

    def open(self, user_agent: str = "", *, is_batched: bool = False) -> "Client":
        session = opened(self.connection, now=self.world.moment, user_agent=user_agent, is_batched=is_batched)
        assert self.world.sessions.open(session)
        return self

    def receive(self, body: str, *, frame: str | None = None) -> list[Any]:
        """Process a message of the inbox; return the new items of the outbox."""
        self.frames += frame is None
        found = FrameId(frame or f"{self.connection}-{self.frames}")
        processor = self.processor or self.world.processor(self.connection, self.ports)
        assert list(processor.process([Arrival(found, self.connection, body, self.world.moment)])) == [found]
        return self.replies()

    def receive_all(self, *bodies: str) -> list[FrameId]:
        """Process several messages of the inbox in one batch; return the ids of those that are done."""
        arrivals = [
            Arrival(FrameId(f"{self.connection}-{self.frames + number}"), self.connection, body, self.world.moment)
            for number, body in enumerate(bodies, start=1)
        ]
        return list(self.world.processor(self.connection, self.ports).process(arrivals))

    def say(self, *message: object, frame: str | None = None) -> list[Any]:
        return self.receive(frame_body(json.dumps(message)), frame=frame)

    def say_all(self, *messages: list[object], frame: str | None = None) -> list[Any]:
        """Send messages in one frame."""
        return self.receive(frame_body(batch(map(json.dumps, messages), RECORD_SEPARATOR)), frame=frame)

    def notify(self, signal: Signal) -> list[Any]:
        return self.receive(signal_body(signal))

    def replies(self) -> list[Any]:
        """Return the new items of the outbox: messages, and the names of other items."""
        items = self.world.outboxes.items[self.connection]
        new, self.read = items[self.read :], len(items)
        return [shown(item) for item in new]

    def join(self, user: str = "subscriber") -> "Client":
        """Join by a ticket."""
        details = {"authid": user, "authmethods": ["ticket"], "roles": ROLES}
        assert self.say(1, REALM, details)[0][0] == 4
        (welcome,) = self.say(5, f"{user}-secret", {})
        assert welcome[0] == 2
        self.session = welcome[1]
        return self


def shown(item: object) -> Any:
    if isinstance(item, Reply):
        return json.loads(item.message)
    if isinstance(item, BackfillRequest):
        return "past"
    assert isinstance(item, CloseRequest)
    return "close"


@dataclass(frozen=True)
class Sent:
    """A message in the exchange's queue."""

    topic: str
    body: Any
    note: dict[str, Any] = field(compare=False)
    message: Message = field(compare=False)


def published(world: MemoryLive) -> list[Sent]:
    """Return the messages in the realm's queue without duplicates."""
    found: dict[str, Sent] = {}
    for message in world.sender.sent.get(world.ports().names.queue(REALM), []):
        note = json.loads(message.attributes[LIVE].text or "")
        key = message.deduplication_id or ""
        found[key] = Sent(message.attributes[TOPIC].text or "", json.loads(message.body), note, message)
    return list(found.values())
