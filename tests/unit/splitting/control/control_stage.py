"""A control plane in memory with simulated time, which runs reconciles as the control queue delivers them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from signalbox.control.envelope import Envelope
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message
from signalbox.queues import QueueName, QueueUrl
from signalbox.splitting.consumers.registry import ConsumedQueue
from signalbox.splitting.control.command_handlers import ControlService
from signalbox.splitting.control.commands import COMMANDS, Command, Reconcile
from signalbox.splitting.control.ports import ControlPorts, Store
from signalbox.splitting.model.observed_state import Timings
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target, TargetKind
from tests.fakes.splitting import (
    MemoryAuditTrail,
    MemoryDeadLetters,
    MemoryForwarders,
    MemoryQueueSender,
    MemorySplitQueues,
    MemoryStore,
    MemoryTargets,
    MemoryTime,
)
from tests.unit.splitting.consumers.registries import new, new_queue
from tests.unit.splitting.forwarding.languages import PlainLanguages

APP = Target.parse("lambda/meme-app")
OTHER_APP = Target.parse("lambda/other-app")
MEMES, ORDERS = QueueName("memes"), QueueName("orders.fifo")
TIMINGS = Timings(settle=timedelta(seconds=10), empty_for=timedelta(seconds=10))
DISCOVERED = {"kind": "discovered"}


@dataclass
class MemoryControlQueue:
    time: MemoryTime
    asked: list[tuple[datetime, Reconcile]] = field(default_factory=list)

    def ask(self, command: Reconcile, *, delay: timedelta) -> None:
        self.asked.append((self.time.now() + delay, command))

    def due(self) -> list[Reconcile]:
        now = self.time.now()
        found = [command for at, command in self.asked if at <= now]
        self.asked = [(at, command) for at, command in self.asked if at > now]
        return found


class MemoryDiscovery:
    def discover(self, target: Target) -> Sequence[Mapping[str, object]]:
        return [{**DISCOVERED, "target": str(target)}]


class ControlStage:
    def __init__(self, *originals: QueueName) -> None:
        self.time = MemoryTime()
        self.memory = MemoryStore()
        self.sender = MemoryQueueSender()
        self.dead_letters = MemoryDeadLetters()
        self.queues = MemorySplitQueues(self.time)
        self.forwarders = MemoryForwarders(self.time)
        self.targets = MemoryTargets()
        self.audit_trail = MemoryAuditTrail()
        self.control_queue = MemoryControlQueue(self.time)
        self.events: list[HistoryEvent] = []
        self.numbers = itertools.count()
        self.ports = ControlPorts(
            store=Store(
                self.memory.splits,
                self.memory.locks,
                self.memory.registries,
                self.memory.samples,
                self.memory.annotations,
                self.memory.ledger,
                self.memory.uses,
            ),
            sender=self.sender,
            dead_letters=self.dead_letters,
            queues=self.queues,
            forwarders=self.forwarders,
            targets={TargetKind.LAMBDA: self.targets},
            discovery=MemoryDiscovery(),
            audit_trail=self.audit_trail,
            control_queue=self.control_queue,
            compiler=PlainLanguages(),
            clock=self.time,
            random_parts=(f"{number:012d}" for number in self.numbers),
            queue_url=lambda name: QueueUrl(f"https://sqs/1/{name}"),
            record=self.events.extend,
            timings=TIMINGS,
            reads_objects=True,
        )
        self.service = ControlService(self.ports)
        self.knows(APP, *(originals or (MEMES,)))

    def knows(self, target: Target, *originals: QueueName) -> None:
        """Add a target with these queues and apply its registry."""
        ids = {original: QueueId(original.removesuffix(".fifo")) for original in originals}
        self.targets.found[target] = [
            ConsumedQueue(queue_id, original, timedelta(seconds=30)) for original, queue_id in ids.items()
        ]
        self.targets.variables[target] = {f"{queue_id.upper()}_QUEUE": name for name, queue_id in ids.items()}
        queues = [new_queue({"env": f"{queue_id.upper()}_QUEUE"}, id=queue_id) for queue_id in ids.values()]
        self.ask("apply", documents=[new(*queues, name=target.name)])

    def ask(self, command: str, **fields: object) -> Any:
        envelope = Envelope("1", None, {"command": command, "id": "1", **fields})
        return self.execute(envelope.command(COMMANDS))

    def execute(self, command: Command) -> Any:
        return self.service.answer(command)

    def start(self, session: str = "ann", *, color: str = "red", target: Target = APP, **fields: object) -> Any:
        wanted = {"target": str(target), "session": session, "owner": f"{session}@laptop", "config": config(color)}
        return self.ask("start", **{**wanted, **fields})

    def stop(self, session: str = "ann", target: Target = APP) -> Any:
        return self.ask("stop", target=str(target), session=session)

    def heartbeat(self, session: str = "ann", target: Target = APP) -> Any:
        return self.ask("heartbeat", target=str(target), session=session)

    def pass_time(self, seconds: int, *, alive: Sequence[str] = ()) -> None:
        """Advance the time and run the reconciles that are due; sessions in `alive` send heartbeats."""
        for _ in range(seconds):
            self.time.moment += timedelta(seconds=1)
            for session in alive:
                self.heartbeat(session)
            for command in self.control_queue.due():
                self.execute(command)

    def split(self, target: Target = APP) -> Split | None:
        stored = self.memory.splits.find(target)
        return stored.split if stored else None

    def session_queue(self, session: str = "ann", original: QueueName = MEMES) -> QueueName:
        split = self.split()
        assert split is not None
        return next(one.queues[original] for one in split.sessions if one.session_id == session)

    def ready(self, *sessions: str) -> "ControlStage":
        """Start sessions one after the other and wait until they are ready; each claims the colour of its name."""
        for session in sessions:
            self.start(session, color=session)
        self.pass_time(15, alive=sessions)
        return self

    def outcomes(self) -> list[tuple[str, str]]:
        return [(event.kind, event.outcome) for event in self.events]


def config(color: str, **fields: object) -> dict[str, object]:
    queue = {"queue_type": "SQS", "message_filter": {"color": color}, **fields}
    return {"feature": {"split_queues": {"*": queue}, "env": {"SECRET": "x"}}, "target": "whatever"}


def message(body: str, color: str = "", group: str | None = None) -> Message:
    system = {"ApproximateFirstReceiveTimestamp": "4102444800000"}
    if group is not None:
        system |= {"MessageGroupId": group, "MessageDeduplicationId": body}
    attributes = {"color": {"DataType": "String", "StringValue": color}} if color else {}
    document = {"MessageId": body, "Body": body, "MessageAttributes": attributes, "Attributes": system}
    return Message.parse(document)
