"""Lambda functions as targets: they read queues by event source mappings, by variables, or both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.splitting.targets.event_source import EventSources
from signalbox.aws.splitting.targets.lambda_environment import LambdaEnvironment
from signalbox.aws.splitting.targets.sources import Originals
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Reference, Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import NameSource, Place, RegisteredQueue, Registry
from signalbox.splitting.consumers.switching import combined
from signalbox.splitting.consumers.variables import Variables
from signalbox.splitting.control.admission import FoundQueue
from signalbox.splitting.model.ports import Notes
from signalbox.splitting.model.split import Split, SplitQueue, Stage
from signalbox.splitting.model.world import TargetState

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient


@dataclass(frozen=True, slots=True)
class LambdaTargets:
    """`Targets` of `TargetKind.LAMBDA`; a target's name is that of a function, or `FUNCTION:ALIAS`.

    `queue_arn_prefix` is what the ARNs of all queues begin with, and `tags` are put on what is made.
    """

    functions: "LambdaClient"
    originals: Originals
    notes: Notes
    resolver: Resolver
    queue_arn_prefix: str
    tags: Mapping[str, str]

    def find(self, registry: Registry) -> Sequence[FoundQueue]:
        """Return the queues that a function consumes. Raises `RejectedError` with the place that has no queue."""
        variables = self._environment.configuration(registry.target).variables
        return [
            found
            for queue in registry.queues
            for found in self.originals.described(queue, dict.fromkeys(self._names(registry, queue, variables)))
        ]

    def environment(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Mapping[str, str]:
        """Return the variables for a local command, each as the original value was, with other queues' names."""
        before = self._environment.before(registry.target)
        switched = self._variables(registry).switched(before, names)
        changed = {name: switched[name] for name in switched if switched[name] != before.get(name)}
        return changed | dict(_of_event_sources(registry, before, names))

    def observe(self, split: Split, registry: Registry) -> TargetState:
        """Return from where the function reads now. Raises `EffectFailed` when AWS does not say."""
        try:
            return self._observed(split, registry)
        except EffectRefused as error:
            raise EffectFailed(str(error)) from error  # nothing was asked for that could be refused

    def _observed(self, split: Split, registry: Registry) -> TargetState:
        queues = _mapped_queues(split, registry)
        found = self._environment.find(split.target)
        states = [self._event_sources.state(split.target, queue) for queue in queues]
        if found is None:
            # Its mappings outlive a function, and those from temporary queues are ours to take away.
            is_to_clean = split.stage is Stage.RESTORING and any(self._left_over(split, queues))
            return TargetState.MIXED if is_to_clean else TargetState.GONE
        if self._variables(registry).sources:
            states.append(self._environment.state(split, self._variables(registry), found))
        return combined(states)

    def switch(self, split: Split, registry: Registry) -> None:
        """Let it read `SplitQueue.deployed`. Raises `EffectRefused` and `EffectFailed`."""
        for queue in _mapped_queues(split, registry):
            self._event_sources.switch(split.target, queue)
        if self._variables(registry).sources:
            self._environment.switch(split, self._variables(registry))

    def switch_back(self, split: Split, registry: Registry) -> None:
        """Let it read the originals again, all as before. Raises `EffectRefused` and `EffectFailed`."""
        is_there = self._environment.find(split.target) is not None
        for queue in _mapped_queues(split, registry):
            back = self._event_sources.switch_back if is_there else self._event_sources.remove
            back(split.target, queue)
        if is_there and self._variables(registry).sources:
            self._environment.switch_back(split, self._variables(registry))

    @property
    def _environment(self) -> LambdaEnvironment:
        return LambdaEnvironment(self.functions, self.notes)

    @property
    def _event_sources(self) -> EventSources:
        return EventSources(self.functions, self.notes, self.queue_arn_prefix, self.tags)

    def _variables(self, registry: Registry) -> Variables:
        sources = (source for queue in registry.queues for source in queue.sources)
        return Variables(self.resolver, tuple(one for one in sources if one.place is not Place.EVENT_SOURCE))

    def _names(self, registry: Registry, queue: RegisteredQueue, variables: Mapping[str, str]) -> Iterator[QueueName]:
        for source in queue.sources:
            if source.place is not Place.EVENT_SOURCE:
                yield from (name for one in self.resolver.resolve(source, variables) for name in one.queue_names)
                continue
            name = Reference(source.key).queue_name
            if not self._event_sources.of(registry.target, name):
                raise UnresolvedQueue(f"{registry.target} has no event source mapping from queue {name!r}")
            yield name

    def _left_over(self, split: Split, queues: Sequence[SplitQueue]) -> Iterator[bool]:
        return (bool(self._event_sources.of(split.target, queue.deployed)) for queue in queues)


def _mapped_queues(split: Split, registry: Registry) -> list[SplitQueue]:
    names = {Reference(source.key).queue_name for source in _event_sources(registry)}
    return [queue for queue in split.queues if queue.original in names]


def _event_sources(registry: Registry) -> list[NameSource]:
    sources = (source for queue in registry.queues for source in queue.sources)
    return [source for source in sources if source.place is Place.EVENT_SOURCE]


def _of_event_sources(
    registry: Registry, before: Mapping[str, str], names: Mapping[QueueName, QueueName]
) -> Iterator[tuple[str, str]]:
    """Yield what a local command reads of a mapping, as the function has it, or the queue's name."""
    for source in _event_sources(registry):
        name = Reference(source.key).queue_name
        if source.variable is None or name not in names:
            continue
        known = Reference(before.get(source.variable, name))
        is_same = known.queue_name == name
        yield source.variable, known.to(names[name]) if is_same else names[name]
