"""A control plane in memory with simulated time, which runs reconciles as the control queue delivers them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.control.envelope import Envelope
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message
from signalbox.queues import QueueName, QueueUrl
from signalbox.splitting.consumers.registry import ConsumedQueue
from signalbox.splitting.control.chains import Chains
from signalbox.splitting.control.command_handlers import ControlService
from signalbox.splitting.control.commands import COMMANDS, Command, Reconcile
from signalbox.splitting.control.effect_executor import EffectExecutor
from signalbox.splitting.control.keeping import KeepService
from signalbox.splitting.control.observation import SplitObserver
from signalbox.splitting.control.ports import DeclaredRegistries, KeptStore, NothingDeclared, Outlets, Resources, Store
from signalbox.splitting.control.presentation import SplitPresenter
from signalbox.splitting.control.problems import ProblemLog
from signalbox.splitting.control.reconcile_loop import ReconcileLoop, Reconciler
from signalbox.splitting.control.registries import RegistryService
from signalbox.splitting.control.registry_reader import RegistryReader
from signalbox.splitting.control.replays import SessionReplayer
from signalbox.splitting.control.routes import RouteReader
from signalbox.splitting.control.session_start import Admissions, SessionStarter
from signalbox.splitting.model.observed_state import Timings
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target, TargetKind
from signalbox.splitting.ports import Targets
from signalbox.task_time import TaskTime
from tests.fakes.clock import MemoryTime
from tests.fakes.splitting import (
    MemoryAuditTrail,
    MemoryDeadLetters,
    MemoryForwarders,
    MemoryQueueSender,
    MemorySplitQueues,
    MemoryStore,
    MemoryTargets,
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
        self.random_parts = (f"{number:012d}" for number in self.numbers)
        self.store = Store(
            self.memory.splits,
            self.memory.samples,
            self.memory.annotations,
            self.memory.ledger,
            self.memory.uses,
        )
        self.kinds: Mapping[TargetKind, Targets] = {TargetKind.LAMBDA: self.targets}
        self.clusters: Sequence[str] = ()
        self.declared: DeclaredRegistries = NothingDeclared()
        self.kept_store: KeptStore | None = None
        self.languages = PlainLanguages()
        self.timings = TIMINGS
        self.knows(APP, *(originals or (MEMES,)))

    @property
    def resources(self) -> Resources:
        return Resources(self.queues, self.forwarders, self.kinds)

    @property
    def reader(self) -> RegistryReader:
        return RegistryReader(self.languages, clusters=self.clusters)

    @property
    def problems(self) -> ProblemLog:
        return ProblemLog(self.store.annotations, self.time)

    @property
    def observer(self) -> SplitObserver:
        return SplitObserver(self.store, self.resources, self.problems)

    @property
    def replayer(self) -> SessionReplayer:
        return SessionReplayer(self.store.splits, self.kept_store, self._outlets, self._routes, self.problems)

    @property
    def chains(self) -> Chains:
        return Chains(self.memory.locks, self.control_queue, self.random_parts, self.time)

    @property
    def loop(self) -> ReconcileLoop:
        executor = EffectExecutor(self.store, self.resources, self._outlets, self._routes, self.replayer)
        reconciler = Reconciler(
            self.store, self.memory.heartbeats, self.observer, executor, self.timings, self.events.extend
        )
        return ReconcileLoop(self.store.splits, self.reader, self.chains, reconciler)

    @property
    def service(self) -> ControlService:
        registries = RegistryService(self.memory.registries, self.reader, self.declared, self.time)
        starter = SessionStarter(
            Admissions(self.store.splits, registries, self.resources, self.kept_store, self.random_parts),
            KeepService(self.store.splits, self.kept_store, self.time),
            SplitPresenter(
                self.store.annotations, self.memory.heartbeats, self.resources, self.reader, _url, self.time
            ),
            self.chains,
            self.events.extend,
            reads_objects=True,
        )
        return ControlService(self.store.splits, registries, starter, self.loop, MemoryDiscovery(), self.audit_trail)

    @property
    def _outlets(self) -> Outlets:
        return Outlets(self.sender, self.dead_letters, self.events.extend)

    @property
    def _routes(self) -> RouteReader:
        return RouteReader(self.languages, self.timings.settle, self.time)

    def knows(self, target: Target, *originals: QueueName) -> None:
        """Add a target with these queues and apply its registry."""
        ids = {original: QueueId(original.removesuffix(".fifo")) for original in originals}
        self.targets.found[target] = [
            ConsumedQueue(queue_id, original, timedelta(seconds=30)) for original, queue_id in ids.items()
        ]
        self.targets.variables[target] = {f"{queue_id.upper()}_QUEUE": name for name, queue_id in ids.items()}
        queues = [new_queue({"env": f"{queue_id.upper()}_QUEUE"}, id=queue_id) for queue_id in ids.values()]
        self.ask("apply", documents=[new(*queues, name=target.name)])

    def ask(self, command: str, *, delivery: CommandDelivery = ONCE, **fields: object) -> Any:
        envelope = Envelope("1", None, {"command": command, "id": "1", **fields})
        return self.execute(envelope.command(COMMANDS), delivery)

    def execute(self, command: Command, delivery: CommandDelivery = ONCE) -> Any:
        return self.service.answer(command, delivery=delivery)

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

    def task_time(self) -> TaskTime:
        return TaskTime(self.time.now, self.time.now() + timedelta(seconds=22))

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


def _url(name: QueueName) -> QueueUrl:
    return QueueUrl(f"https://sqs/1/{name}")


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
