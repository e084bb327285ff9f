"""The effect executor: creates, deletes and switches the AWS resources of a split, one effect at a time."""

from dataclasses import dataclass
from datetime import timedelta

from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.control.observation import record_start
from signalbox.splitting.control.ports import ControlPorts
from signalbox.splitting.control.replays import SessionReplayer
from signalbox.splitting.control.returned_messages import MessageReturner
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.route import Route
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.model.actions import (
    CloseQueue,
    CreateQueue,
    DeleteQueue,
    Effect,
    RemoveForwarding,
    ReplayKept,
    ReturnMessages,
    StartForwarding,
    StopForwarding,
    SwitchTarget,
    SwitchTargetBack,
)
from signalbox.splitting.model.split import Split, SplitQueue
from signalbox.splitting.ports import StoredSplit

QUEUE_ANNOTATION = "queue"
# Messages are returned by the record as it was read, so only while it is valid (`Timings.settle`).
RETURNING_FOR = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class EffectExecutor:
    """Executes effects by a record that was just read. Every effect is idempotent."""

    ports: ControlPorts
    stored: StoredSplit
    registry: Registry

    @property
    def split(self) -> Split:
        """Return the record."""
        return self.stored.split

    def execute(self, effect: Effect) -> bool:
        """Execute one effect; return whether it can continue at once. Raises `EffectRefused` and `EffectFailed`."""
        targets = self.ports.targets_of(self.split.target)
        match effect:
            case CreateQueue():
                self._create(effect)
            case DeleteQueue(name):
                self.ports.queues.delete(name)
            case SwitchTarget():
                targets.switch(self.split, self.registry)
            case SwitchTargetBack():
                targets.switch_back(self.split, self.registry)
            case CloseQueue(name, _, seen):
                return self.ports.store.uses.close(name, seen=seen, now=self.ports.now())
            case ReplayKept(session_id):
                return SessionReplayer(self.ports, self.stored).step(session_id)
            case ReturnMessages():
                return self._return(effect)
            case _:
                self._forward(effect)
        return False  # AWS shows the result only after some time

    def _forward(self, effect: StartForwarding | StopForwarding | RemoveForwarding) -> None:
        if isinstance(effect, StartForwarding):
            record_start(self.ports, self.split, effect.original, now=self.ports.now())
            self.ports.forwarders.start(effect.original)
        elif isinstance(effect, StopForwarding):
            self.ports.forwarders.stop(effect.original)
        else:
            self.ports.forwarders.remove(effect.original)

    def _create(self, effect: CreateQueue) -> None:
        session = self.split.session(effect.session_id) if effect.session_id else None
        queue = self._queue(effect.original)
        notes = self.ports.queues.create(effect.name, queue, target=self.split.target, session=session)
        if notes:
            name = queue_annotation(effect.name)
            self.ports.store.annotations.put(self.split.target, name, "\n".join(notes))

    def _return(self, effect: ReturnMessages) -> bool:
        now, queue = self.ports.now(), self._queue(effect.original)
        settle, until = self.ports.timings.settle, now + RETURNING_FOR
        budget = FilterBudget.of(self.ports.compiler, RETURNING_FOR)
        route = Route.of(self.stored, queue, budget=budget, read_at=now, settle=settle, known={})
        work = MessageReturner(self.ports, route, effect.name, UseRecorder(self.ports.store.uses, self.ports.now))
        while is_done := work.step(to_original=effect.to_original):
            if self.ports.now() >= until:
                break
        return is_done

    def _queue(self, original: QueueName) -> SplitQueue:
        return next(queue for queue in self.split.queues if queue.original == original)


def queue_annotation(name: QueueName) -> str:
    """Return the name of the annotation that holds the notes on a temporary queue."""
    return f"{QUEUE_ANNOTATION}:{name}"
