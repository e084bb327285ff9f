"""Event source mappings: by them Lambda reads a queue for a function, and they are how it reads another one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from signalbox.aws.shared.errors import effect
from signalbox.errors import EffectRefused
from signalbox.queues import QueueName
from signalbox.splitting.consumers.switching import Pair, Reading, Step, combined
from signalbox.splitting.model.ports import Notes
from signalbox.splitting.model.split import SplitQueue
from signalbox.splitting.model.target import Target
from signalbox.splitting.model.world import TargetState

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef as Mapped

# All settings of a mapping from a queue; those of other sources (streams, Kafka) never come with SQS.
SETTINGS = (
    "BatchSize",
    "MaximumBatchingWindowInSeconds",
    "FilterCriteria",
    "KMSKeyArn",
    "MetricsConfig",
    "LoggingConfig",
    "ScalingConfig",
    "FunctionResponseTypes",
    "ProvisionedPollerConfig",
)
RESERVED_TAGS = "aws:"  # such as CloudFormation's, which nobody else may set
NOTE = "mappings of "
READINGS = {"Enabled": Reading.ON, "Disabled": Reading.OFF}


@dataclass(frozen=True, slots=True)
class MappedPair:
    """A function's mappings from a queue and from the temporary one, as they are and as the original was."""

    function_arn: str
    pair: Pair
    original: "Mapped | None"
    temporary: "Mapped | None"
    before: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class EventSources:
    """The event source mappings of functions; `tags` say whose those from temporary queues are."""

    functions: "LambdaClient"
    notes: Notes
    queue_arn_prefix: str
    tags: Mapping[str, str]

    def of(self, target: Target, queue: QueueName) -> Sequence["Mapped"]:
        """Return a function's mappings from a queue, of all its aliases unless the target is one of them."""
        with effect(f"event source mappings of queue {queue!r}"):
            pages = self.functions.get_paginator("list_event_source_mappings").paginate(
                EventSourceArn=self.queue_arn_prefix + queue
            )
            return [one for page in pages for one in page["EventSourceMappings"] if _is_of(target, one)]

    def pairs(self, target: Target, queue: SplitQueue) -> Sequence[MappedPair]:
        """Return how a function reads a queue that is split, by each of its aliases that does."""
        original = {one["FunctionArn"]: one for one in self.of(target, queue.original)}
        temporary = {one["FunctionArn"]: one for one in self.of(target, queue.deployed)}
        before: Mapping[str, Any] = json.loads(self.notes.of(target).get(NOTE + queue.original, "{}"))
        arns = dict.fromkeys((*original, *temporary, *before))
        pairs = [_mapped_pair(arn, original, temporary, before) for arn in arns]
        return [one for one in pairs if one.temporary or not one.pair.is_replaced]

    def state(self, target: Target, queue: SplitQueue) -> TargetState:
        """Return from where the function reads."""
        return combined(one.pair.state for one in self.pairs(target, queue))

    def switch(self, target: Target, queue: SplitQueue) -> None:
        """Let the function read the temporary queue: the new mapping first, and the old one off when it is on."""
        pairs = self.pairs(target, queue)
        if not pairs:
            raise EffectRefused(f"{target} has no event source mapping from queue {queue.original!r} any more")
        self._note(target, queue, pairs)
        for pair in pairs:
            self._follow(pair, queue, is_back=False)

    def switch_back(self, target: Target, queue: SplitQueue) -> None:
        """Let the function read the original again: the old mapping on first, and then the new one away."""
        for pair in self.pairs(target, queue):
            self._follow(pair, queue, is_back=True)

    def remove(self, target: Target, queue: SplitQueue) -> None:
        """Take the mappings from a temporary queue away, of a function that is not there any more."""
        for pair in self.pairs(target, queue):
            self._follow(replace(pair, pair=replace(pair.pair, is_replaced=True)), queue, is_back=True)

    def _follow(self, mapped: MappedPair, queue: SplitQueue, *, is_back: bool) -> None:
        # As many steps as AWS finishes at once; it mostly does not, and the next look at the target goes on.
        step = mapped.pair.step_back if is_back else mapped.pair.step
        while step is not None:
            mapped = self._carried_out(step, mapped, queue)
            step = mapped.pair.step_back if is_back else mapped.pair.step

    def _carried_out(self, step: Step, mapped: MappedPair, queue: SplitQueue) -> MappedPair:
        is_original = step in (Step.CREATE_ORIGINAL, Step.ENABLE_ORIGINAL, Step.DISABLE_ORIGINAL)
        name = queue.original if is_original else queue.deployed
        found = mapped.original if is_original else mapped.temporary
        with effect(f"event source mapping from queue {name!r} to function {mapped.function_arn!r}"):
            if found is None:  # only then does `Pair` ask for one to be made
                now = self._created(mapped, name, tags={} if is_original else self.tags)
            elif step is Step.DELETE_TEMPORARY:
                now = {**self.functions.delete_event_source_mapping(UUID=found["UUID"]), "State": "Deleting"}
            else:
                is_enabled = step in (Step.ENABLE_ORIGINAL, Step.ENABLE_TEMPORARY)
                now = self.functions.update_event_source_mapping(UUID=found["UUID"], Enabled=is_enabled)
        if is_original:
            return replace(mapped, original=now, pair=replace(mapped.pair, original=_reading(now)))
        return replace(mapped, temporary=now, pair=replace(mapped.pair, temporary=_reading(now)))

    def _created(self, mapped: MappedPair, name: QueueName, *, tags: Mapping[str, str]) -> Any:  # noqa: ANN401 — AWS's
        before = mapped.before or self._described(mapped)
        return self.functions.create_event_source_mapping(
            **before["settings"],
            EventSourceArn=self.queue_arn_prefix + name,
            FunctionName=mapped.function_arn,
            Enabled=before["enabled"],
            Tags={**before["tags"], **tags},
        )

    def _note(self, target: Target, queue: SplitQueue, pairs: Sequence[MappedPair]) -> None:
        """Write down how the mappings were before anything is done to them, so that a lost one can be made again."""
        if any(pair.before for pair in pairs):
            return
        before = {one.function_arn: self._described(one) for one in pairs if one.original is not None}
        self.notes.put(target, NOTE + queue.original, json.dumps(before))

    def _described(self, mapped: MappedPair) -> dict[str, Any]:
        # There is one at least: a pair without any is one of which it was noted how it was.
        found = next(one for one in (mapped.original, mapped.temporary) if one is not None)
        with effect(f"event source mapping {found['UUID']!r} of function {mapped.function_arn!r}"):
            # A list does not tell the filters of a mapping that are encrypted with a customer's key.
            whole = self.functions.get_event_source_mapping(UUID=found["UUID"])
            tags = self.functions.list_tags(Resource=whole["EventSourceMappingArn"]).get("Tags", {})
        if problem := whole.get("FilterCriteriaError"):
            raise EffectRefused(
                f"filters of event source mapping {found['UUID']!r} cannot be read, so they cannot be kept: "
                f"{problem.get('ErrorCode')}: {problem.get('Message')}"
            )
        return {
            "enabled": mapped.pair.is_enabled,
            "settings": {name: whole[name] for name in SETTINGS if whole.get(name)},  # type: ignore[literal-required]
            "tags": {key: text for key, text in tags.items() if not key.startswith(RESERVED_TAGS)},
        }


def _mapped_pair(
    arn: str, original: Mapping[str, "Mapped"], temporary: Mapping[str, "Mapped"], before: Mapping[str, Any]
) -> MappedPair:
    reading = _reading(original.get(arn))
    is_enabled = before[arn]["enabled"] if arn in before else reading is not Reading.OFF
    is_replaced = arn not in original and bool(original)
    pair = Pair(reading, _reading(temporary.get(arn)), is_enabled=is_enabled, is_replaced=is_replaced)
    return MappedPair(arn, pair, original.get(arn), temporary.get(arn), before.get(arn))


def _reading(mapping: "Mapped | None") -> Reading:
    if mapping is None:
        return Reading.ABSENT
    return READINGS.get(mapping["State"], Reading.CHANGING)


def _is_of(target: Target, mapping: "Mapped") -> bool:
    name, _, qualifier = target.name.partition(":")
    found = mapping.get("FunctionArn", "").split(":")[6:]
    return found[:1] == [name] and (not qualifier or found[1:] == [qualifier])
