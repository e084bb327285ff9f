"""Forwarding and return in the simulation: the shell around the rules, which may be killed at any step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING

from signalbox.fifo import FifoBatch
from signalbox.messages import Message, outgoing
from signalbox.queues import QueueName
from signalbox.sending import Batch, Delivery, batches
from signalbox.splitting.forwarding.deliveries import deliveries, return_request
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.model.claims import Decision
from signalbox.splitting.model.session_config import QueueId, SessionConfig, parse_mirrord_file
from signalbox.splitting.model.split import Split, SplitSession
from tests.unit.splitting.forwarding.languages import PlainLanguages
from tests.unit.splitting.forwarding.naive_queues import Entry

if TYPE_CHECKING:
    from tests.unit.splitting.forwarding.simulation import Simulation

POISON = "poison"


@dataclass
class Arrival:
    """The arrival of a message in a queue."""

    number: int
    key: int
    queue: QueueName
    how: str


@dataclass
class Messages:
    """Forwards and returns messages."""

    simulation: "Simulation"

    def give_back(self, name: QueueName, original: QueueName, *, to_original: bool) -> None:
        split = self.simulation.split
        assert split is not None
        if name not in self.simulation.queues:
            return
        self.simulation.first_return.setdefault(name, next(self.simulation.numbers))
        entries = self.simulation.queues[name].receive(10, now=self.simulation.seconds)
        if not to_original:
            session = next(one for one in split.sessions if one.queues[original] == name)
            self.forward(
                name,
                original,
                entries,
                split=split,
                routed=lambda at: split.heirs(session, original, received_at=at),
                how="return",
                uses=self.simulation.recorder(),
            )
            return
        for entry in entries:
            self.simulation.burn()
            request = return_request(entry.message(is_fifo=original.endswith(".fifo")))
            self._put(original, entry, str(request.get("MessageDeduplicationId", "")), "restore")
            self.simulation.burn()
            self.simulation.queues[name].delete(entry)

    def forward(
        self,
        source: QueueName,
        original: QueueName,
        entries: list[Entry],
        *,
        split: Split,
        routed: Callable[[datetime], tuple[SplitSession, ...]],
        how: str,
        uses: UseRecorder,
    ) -> None:
        is_fifo = original.endswith(".fifo")
        by_id = {entry.message_id: entry for entry in entries}
        messages = [entry.message(is_fifo=is_fifo) for entry in entries]
        names = {one.session_id: one.queues[original] for one in split.sessions}
        deployed = next(queue.deployed for queue in split.queues if queue.original == original)
        planned: list[tuple[Message, tuple[Delivery, ...]]] = []
        for message in messages:
            assert message.first_received_at is not None
            sessions = routed(message.first_received_at)
            self.simulation.burn()
            decision = decided(message, sessions, original, uses)
            found = deliveries(message, decision, deployed=deployed, sessions=names)
            # The copies were made when the message was forwarded.
            planned.append((message, found[:1] if how == "return" else found))
        work = FifoBatch(planned, is_fifo)
        while ready := work.take_ready():
            for batch in batches(chain.from_iterable(ready)):
                self.simulation.burn()
                self._send(batch, work, by_id, how, uses)
        self.simulation.burn()
        undone = work.not_done()
        for message in messages:
            if message.message_id not in undone and source in self.simulation.queues:
                self.simulation.queues[source].delete(by_id[message.message_id])
                self.simulation.burn()

    def _send(
        self,
        batch: Batch,
        work: FifoBatch[tuple[Delivery, ...]],
        by_id: dict[str, Entry],
        how: str,
        uses: UseRecorder,
    ) -> None:
        is_open = uses.is_open(batch.destination)
        for delivery in batch.deliveries:
            entry = by_id[delivery.message.message_id]
            if entry.color == POISON:
                self.simulation.dead.append(entry.key)
            elif batch.destination not in self.simulation.queues or not is_open:
                work.fail(delivery.message.message_id)
            else:
                request = outgoing(delivery.message)
                assert request["MessageBody"] == str(entry.key)
                self._put(batch.destination, entry, str(request.get("MessageDeduplicationId", "")), how)

    def _put(self, queue: QueueName, entry: Entry, deduplication_id: str, how: str) -> None:
        number = next(self.simulation.numbers)
        copy = Entry(entry.key, entry.color, entry.group, deduplication_id or f"{number}", f"{queue}-{number}")
        if self.simulation.queues[queue].send(copy):
            self.simulation.arrivals.append(Arrival(number, entry.key, queue, how))


def decided(message: Message, sessions: Sequence[SplitSession], original: QueueName, uses: UseRecorder) -> Decision:
    """Return the routing of a message among the sessions whose queues are open."""
    names = {one.session_id: one.queues[original] for one in sessions}
    claims = [stored_config(one).claim(one.session_id, QueueId(original)) for one in sessions]
    decision = decide(message, claims)
    while decision.owner is not None and not uses.is_open(names[decision.owner]):
        claims = [claim for claim in claims if claim.session != decision.owner]
        decision = decide(message, claims)
    return decision


def config_document(color: str, mode: str) -> dict[str, object]:
    filters = {} if mode == "exclusive" else {"message_filter": {"color": f"^{color}$"}}
    queue = {"queue_type": "SQS", "queue_mode": mode, **filters}
    return {"feature": {"split_queues": {"*": queue}}}


def config(color: str, mode: str) -> SessionConfig:
    return parse_mirrord_file(config_document(color, mode), PlainLanguages())


def stored_config(session: SplitSession) -> SessionConfig:
    return config(*session.config.split(" "))
