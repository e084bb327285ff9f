"""Observation of a split's target, forwarders and queues, and the samples that are stored for it."""

from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.errors import EffectFailed
from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.control.ports import Resources, Store, temporary_names
from signalbox.splitting.control.problems import ProblemLog
from signalbox.splitting.model.observed_state import Forwarder, ObservedState, TargetState
from signalbox.splitting.model.split import Phase, Split, Stage
from signalbox.splitting.ports import Annotations

STOPPED = "forwarding-stopped"


@dataclass(frozen=True, slots=True)
class SplitObserver:
    """Observes splits."""

    store: Store
    resources: Resources
    problems: ProblemLog

    def observe(self, split: Split, registry: Registry, *, now: datetime) -> ObservedState:
        """Return the observed state and store the samples. Raises `EffectRefused` and `EffectFailed`."""
        found = self.resources.queues.observe(temporary_names(split), now=now)
        samples = self.store.samples.add(split.target, {name: sample for name, (_, sample) in found.items()})
        uses = self.store.uses.of([name for name in _being_emptied(split) if name in found])
        return ObservedState(
            target=self._target_state(split, registry),
            forwarders=self._forwarders(split),
            queues={
                name: replace(queue, samples=samples.get(name, ()), use=uses.get(name))
                for name, (queue, _) in found.items()
            },
        )

    def _target_state(self, split: Split, registry: Registry) -> TargetState:
        """Return the state of the target; one that cannot be observed counts as changing, and nothing waits for it."""
        try:
            return self.resources.targets_of(split.target).observe(split, registry)
        except EffectFailed as error:
            # Sessions still end and join, and messages are forwarded, while for example a cluster is away.
            self.problems.record(split.target, str(error))
            return TargetState.CHANGING

    def _forwarders(self, split: Split) -> dict[QueueName, Forwarder]:
        found = dict(self.resources.forwarders.observe([queue.original for queue in split.queues]))
        closing = [queue.original for queue in split.queues if split.is_closing(queue.original)]
        annotations = self.store.annotations.of(split.target) if closing else {}
        for original in closing:
            stop = annotations.get(f"{STOPPED}:{original}")
            found[original] = replace(
                found.get(original, Forwarder()),
                unfinished=tuple(self.store.ledger.unfinished(original)),
                stop_requested_at=datetime.fromisoformat(stop) if stop else None,
            )
        return found


def record_stop(annotations: Annotations, split: Split, original: QueueName, *, now: datetime) -> None:
    """Record a request to stop forwarding instead of an earlier one."""
    remove_stop(annotations, split, original)
    annotations.put(split.target, f"{STOPPED}:{original}", now.isoformat())


def remove_stop(annotations: Annotations, split: Split, original: QueueName) -> None:
    """Remove the record of a request to stop forwarding: where there is none, `split` stopped it early by itself."""
    annotations.remove(split.target, [f"{STOPPED}:{original}"])


def _being_emptied(split: Split) -> list[QueueName]:
    """Return the queues whose recorded use counts: those that are to be empty soon."""
    ending = [name for one in split.sessions if one.phase is Phase.ENDING for name in one.queues.values()]
    is_undone = split.stage in (Stage.DRAINING, Stage.CLEANING)
    return [*ending, *(queue.deployed for queue in split.queues if is_undone)]
