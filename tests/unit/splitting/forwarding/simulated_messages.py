"""How messages go from queue to queue in the simulation: the shell around the rules, which may be killed anywhere."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from signalbox.messages import outgoing
from signalbox.queues import QueueName
from signalbox.sending import Batch, Delivery
from signalbox.splitting.forwarding.forwarding import Forwarding, deliveries, returned
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.model.session_config import QueueId, SessionConfig, parse_mirrord_file
from signalbox.splitting.model.split import Session, Split
from tests.unit.splitting.forwarding.languages import PlainLanguages
from tests.unit.splitting.forwarding.naive_queues import Entry

if TYPE_CHECKING:
    from tests.unit.splitting.forwarding.simulation import Simulation

POISON = "poison"


@dataclass
class Arrival:
    """A message came into a queue."""

    number: int
    key: int
    queue: QueueName
    how: str


@dataclass
class Messages:
    """What forwards and returns messages."""

    world: "Simulation"

    def give_back(self, name: QueueName, original: QueueName, *, to_original: bool) -> None:
        split = self.world.split
        assert split is not None
        if name not in self.world.queues:
            return
        self.world.first_return.setdefault(name, next(self.world.numbers))
        entries = self.world.queues[name].receive(10, now=self.world.seconds)
        if not to_original:
            session = next(one for one in split.sessions if one.queues[original] == name)
            self.forward(
                name,
                original,
                entries,
                split=split,
                routed=lambda at: split.heirs(session, original, received_at=at),
                how="return",
            )
            return
        for entry in entries:
            self.world.burn()
            told = returned(entry.message(is_fifo=original.endswith(".fifo")))
            self._put(original, entry, str(told.get("MessageDeduplicationId", "")), "restore")
            self.world.burn()
            self.world.queues[name].delete(entry)

    def forward(
        self,
        source: QueueName,
        original: QueueName,
        entries: list[Entry],
        *,
        split: Split,
        routed: Callable[[datetime], tuple[Session, ...]],
        how: str,
    ) -> None:
        is_fifo = original.endswith(".fifo")
        by_id = {entry.message_id: entry for entry in entries}
        messages = [entry.message(is_fifo=is_fifo) for entry in entries]
        names = {one.session_id: one.queues[original] for one in split.sessions}
        deployed = next(queue.deployed for queue in split.queues if queue.original == original)
        planned: list[Delivery] = []
        for message in messages:
            assert message.first_received_at is not None
            sessions = routed(message.first_received_at)
            claims = [config_of(one).claim(one.session_id, QueueId(original)) for one in sessions]
            found = deliveries(message, decide(message, claims), deployed=deployed, sessions=names)
            planned += found[:1] if how == "return" else found  # copies were made when it was forwarded
        work = Forwarding(messages, is_fifo, planned)
        while batches := work.next_batches():
            for batch in batches:
                self.world.burn()
                self._send(batch, work, by_id, how)
        self.world.burn()
        undone = work.not_done()
        for message in messages:
            if message.message_id not in undone and source in self.world.queues:
                self.world.queues[source].delete(by_id[message.message_id])
                self.world.burn()

    def _send(self, batch: Batch, work: Forwarding, by_id: dict[str, Entry], how: str) -> None:
        for delivery in batch.deliveries:
            entry = by_id[delivery.message.message_id]
            if entry.color == POISON:
                self.world.dead.append(entry.key)
            elif batch.destination not in self.world.queues:
                work.failed(delivery)
            else:
                told = outgoing(delivery.message)
                assert told["MessageBody"] == str(entry.key)
                self._put(batch.destination, entry, str(told.get("MessageDeduplicationId", "")), how)

    def _put(self, queue: QueueName, entry: Entry, deduplication_id: str, how: str) -> None:
        number = next(self.world.numbers)
        copy = Entry(entry.key, entry.color, entry.group, deduplication_id or f"{number}", f"{queue}-{number}")
        if self.world.queues[queue].send(copy):
            self.world.arrivals.append(Arrival(number, entry.key, queue, how))


def config_document(color: str, mode: str) -> dict[str, object]:
    queue = {"queue_type": "SQS", "queue_mode": mode, "message_filter": {"color": f"^{color}$"}}
    return {"feature": {"split_queues": {"*": queue}}}


def config(color: str, mode: str) -> SessionConfig:
    return parse_mirrord_file(config_document(color, mode), PlainLanguages())


def config_of(session: Session) -> SessionConfig:
    return config(*session.config.split(" "))
