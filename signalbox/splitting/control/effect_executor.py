"""The effect executor: creates, deletes and switches the AWS resources of a split, one effect at a time."""

from dataclasses import dataclass
from datetime import timedelta

from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.control.observation import record_stop, remove_stop
from signalbox.splitting.control.ports import Outlets, Resources, Store
from signalbox.splitting.control.replays import SessionReplayer
from signalbox.splitting.control.returned_messages import MessageReturner
from signalbox.splitting.control.routes import RouteReader
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.model import actions
from signalbox.splitting.model.split import Split, SplitQueue, shortened
from signalbox.splitting.ports import StoredSplit

QUEUE_ANNOTATION = "queue"
# Messages are returned by the record as it was read, so only while it is valid (`Timings.settle`).
RETURNING_FOR = timedelta(seconds=4)


@dataclass(frozen=True, slots=True)
class EffectExecutor:
    """Executes effects. Every effect is idempotent."""

    store: Store
    resources: Resources
    outlets: Outlets
    routes: RouteReader
    replayer: SessionReplayer

    def execute(self, stored: StoredSplit, registry: Registry, effect: actions.Effect) -> bool:
        """Execute one effect by a record that was just read; return whether it can continue at once.

        Raises `EffectRefused` and `EffectFailed`.
        """
        split, now = stored.split, self.routes.clock.now()
        targets = self.resources.targets_of(split.target)
        match effect:
            case actions.CreateQueue():
                self._create(split, effect)
            case actions.DeleteTemporaryQueue(name):
                self.resources.queues.delete(name)
            case actions.SwitchTarget():
                targets.switch(split, registry)
            case actions.SwitchTargetBack():
                targets.switch_back(split, registry)
            case actions.CloseQueue(name, _, seen):
                return self.store.uses.close(name, seen=seen, now=now)
            case actions.ReplayKept(session_id):
                return self.replayer.step(stored, session_id)
            case actions.ReturnMessages():
                return self._return(stored, effect)
            case _:
                self._forward(split, effect)
        return False  # AWS shows the result only after some time

    def _forward(
        self, split: Split, effect: actions.StartForwarding | actions.StopForwarding | actions.RemoveForwarding
    ) -> None:
        if isinstance(effect, actions.StartForwarding):
            remove_stop(self.store.annotations, split, effect.original)
            self.resources.forwarders.start(effect.original)
        elif isinstance(effect, actions.StopForwarding):
            record_stop(self.store.annotations, split, effect.original, now=self.routes.clock.now())
            self.resources.forwarders.stop(effect.original)
        else:
            self.resources.forwarders.remove(effect.original)

    def _create(self, split: Split, effect: actions.CreateQueue) -> None:
        session = split.session(effect.session_id) if effect.session_id else None
        queue = _queue(split, effect.original)
        notes = self.resources.queues.create(effect.name, queue, target=split.target, session=session)
        if notes:
            name = queue_annotation(effect.name)
            self.store.annotations.put(split.target, name, shortened("\n".join(notes)))

    def _return(self, stored: StoredSplit, effect: actions.ReturnMessages) -> bool:
        now = self.routes.clock.now
        until = now() + RETURNING_FOR
        route = self.routes.of(stored, _queue(stored.split, effect.original), within=RETURNING_FOR)
        uses, queues = UseRecorder(self.store.uses, now), self.resources.queues
        work = MessageReturner(self.store.splits, queues, self.outlets, self.routes, route, effect.name, uses)
        while is_done := work.step(to_original=effect.to_original):
            if now() >= until:
                break
        return is_done


def _queue(split: Split, original: QueueName) -> SplitQueue:
    return next(queue for queue in split.queues if queue.original == original)


def queue_annotation(name: QueueName) -> str:
    """Return the name of the annotation that holds the notes on a temporary queue."""
    return f"{QUEUE_ANNOTATION}:{name}"
