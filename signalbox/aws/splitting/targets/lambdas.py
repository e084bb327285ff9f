"""Lambda functions as targets: they read queues by event source mappings, by variables, or both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.splitting.targets.event_source import EventSources
from signalbox.aws.splitting.targets.lambda_environment import LambdaEnvironment
from signalbox.aws.splitting.targets.original_queues import OriginalQueues
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import MissingReference, Resolver
from signalbox.splitting.consumers.queue_reference import QueueReference
from signalbox.splitting.consumers.registry import ConsumedQueue, NameSource, RegisteredQueue, Registry, SourceKind
from signalbox.splitting.consumers.variables import Variables
from signalbox.splitting.model.observed_state import TargetState, combined_state
from signalbox.splitting.model.split import Split, SplitQueue, Stage
from signalbox.splitting.ports import Annotations

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient


@dataclass(frozen=True, slots=True)
class LambdaTargets:
    """`Targets` of `TargetKind.LAMBDA`; a target's name is that of a function, or `FUNCTION:ALIAS`.

    `queue_arn_prefix` is a queue's ARN up to its name, and `tags` are set on created mappings.
    """

    functions: "LambdaClient"
    originals: OriginalQueues
    annotations: Annotations
    resolver: Resolver
    queue_arn_prefix: str
    tags: Mapping[str, str]

    def find(self, registry: Registry) -> Sequence[ConsumedQueue]:
        """Return the queues that a function consumes. Raises `RejectedError` with the reference that names no queue."""
        variables = self._environment.configuration(registry.target).variables
        return self.originals.found(registry, lambda queue: self._names(registry, queue, variables))

    def environment(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Mapping[str, str]:
        """Return the variables for a local command: the original values with the queue names replaced by `names`."""
        before = self._environment.before(registry.target)
        switched = self._variables(registry).switched(before, names)
        changed = {name: switched[name] for name in switched if switched[name] != before.get(name)}
        return changed | dict(_of_event_sources(registry, before, names))

    def observe(self, split: Split, registry: Registry) -> TargetState:
        """Return which queues the function reads now. Raises `EffectFailed` if AWS does not return it."""
        try:
            return self._observed(split, registry)
        except EffectRefused as error:
            raise EffectFailed(str(error)) from error  # a read cannot be refused for good

    def _observed(self, split: Split, registry: Registry) -> TargetState:
        queues = _mapped_queues(split, registry)
        found = self._environment.find(split.target)
        states = [self._event_sources.state(split.target, queue) for queue in queues]
        if found is None:
            # Mappings outlive their function, and those on temporary queues must be deleted.
            is_to_clean = split.stage is Stage.RESTORING and any(self._left_over(split, queues))
            return TargetState.MIXED if is_to_clean else TargetState.GONE
        if self._variables(registry).sources:
            states.append(self._environment.state(split, self._variables(registry), found))
        return combined_state(states)

    def switch(self, split: Split, registry: Registry) -> None:
        """Switch the function to the queues `SplitQueue.deployed`. Raises `EffectRefused` and `EffectFailed`."""
        for queue in _mapped_queues(split, registry):
            self._event_sources.switch(split.target, queue)
        if self._variables(registry).sources:
            self._environment.switch(split, self._variables(registry))

    def switch_back(self, split: Split, registry: Registry) -> None:
        """Switch the function back to the originals. Raises `EffectRefused` and `EffectFailed`."""
        is_there = self._environment.find(split.target) is not None
        for queue in _mapped_queues(split, registry):
            back = self._event_sources.switch_back if is_there else self._event_sources.remove
            back(split.target, queue)
        if is_there and self._variables(registry).sources:
            self._environment.switch_back(split, self._variables(registry))

    @property
    def _environment(self) -> LambdaEnvironment:
        return LambdaEnvironment(self.functions, self.annotations)

    @property
    def _event_sources(self) -> EventSources:
        return EventSources(self.functions, self.annotations, self.queue_arn_prefix, self.tags)

    def _variables(self, registry: Registry) -> Variables:
        sources = (source for queue in registry.queues for source in queue.sources)
        return Variables(self.resolver, tuple(one for one in sources if one.kind is not SourceKind.EVENT_SOURCE))

    def _names(self, registry: Registry, queue: RegisteredQueue, variables: Mapping[str, str]) -> Iterator[QueueName]:
        for source in queue.sources:
            if source.kind is not SourceKind.EVENT_SOURCE:
                yield from (name for one in self.resolver.resolve(source, variables) for name in one.queue_names)
                continue
            reference = QueueReference(source.key)
            self.resolver.check_home(reference, f"event source of queue {queue.queue_id!r}")
            name = reference.queue_name
            if not self._event_sources.of(registry.target, name):
                raise MissingReference(f"{registry.target} has no event source mapping from queue {name!r}")
            yield name

    def _left_over(self, split: Split, queues: Sequence[SplitQueue]) -> Iterator[bool]:
        return (bool(self._event_sources.of(split.target, queue.deployed)) for queue in queues)


def _mapped_queues(split: Split, registry: Registry) -> list[SplitQueue]:
    names = {QueueReference(source.key).queue_name for source in _event_sources(registry)}
    return [queue for queue in split.queues if queue.original in names]


def _event_sources(registry: Registry) -> list[NameSource]:
    sources = (source for queue in registry.queues for source in queue.sources)
    return [source for source in sources if source.kind is SourceKind.EVENT_SOURCE]


def _of_event_sources(
    registry: Registry, before: Mapping[str, str], names: Mapping[QueueName, QueueName]
) -> Iterator[tuple[str, str]]:
    """Yield the variable that a local command reads for each mapping, in the form that the function has."""
    for source in _event_sources(registry):
        name = QueueReference(source.key).queue_name
        if source.variable is None or name not in names:
            continue
        known = QueueReference(before.get(source.variable, name))
        is_same = known.queue_name == name
        yield source.variable, known.to(names[name]) if is_same else names[name]
