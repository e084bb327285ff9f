"""Event source mappings of Lambda targets: the switch from an original queue to a temporary one and back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from signalbox.aws.shared.errors import translate_write_errors
from signalbox.errors import EffectRefused
from signalbox.queues import QueueName
from signalbox.splitting.consumers.mapping_pair import MappingChange, MappingPair, MappingState
from signalbox.splitting.model.observed_state import TargetState, combined_state
from signalbox.splitting.model.split import SplitQueue
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Annotations

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef as Mapped

# All settings of an SQS mapping; those of other sources (streams, Kafka) never occur with SQS.
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
RESERVED_TAGS = "aws:"  # such as CloudFormation's, which only AWS may set
MAPPINGS_ANNOTATION = "mappings of "
READINGS = {"Enabled": MappingState.ON, "Disabled": MappingState.OFF}


@dataclass(frozen=True, slots=True)
class FunctionMappings:
    """A function's mappings on an original and its temporary queue, with the saved settings of the former."""

    function_arn: str
    pair: MappingPair
    original: "Mapped | None"
    temporary: "Mapped | None"
    before: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class EventSources:
    """The event source mappings of functions; `tags` are set on the mappings of temporary queues."""

    functions: "LambdaClient"
    annotations: Annotations
    queue_arn_prefix: str
    tags: Mapping[str, str]

    def of(self, target: Target, queue: QueueName) -> Sequence["Mapped"]:
        """Return a function's mappings on a queue, including those of all aliases unless the target is one alias."""
        with translate_write_errors(f"event source mappings of queue {queue!r}"):
            pages = self.functions.get_paginator("list_event_source_mappings").paginate(
                EventSourceArn=self.queue_arn_prefix + queue
            )
            return [one for page in pages for one in page["EventSourceMappings"] if _is_of(target, one)]

    def pairs(self, target: Target, queue: SplitQueue) -> Sequence[FunctionMappings]:
        """Return the mapping pairs of a split queue, one for the function and each alias that reads it."""
        original = {one["FunctionArn"]: one for one in self.of(target, queue.original)}
        temporary = {one["FunctionArn"]: one for one in self.of(target, queue.deployed)}
        before: Mapping[str, Any] = json.loads(
            self.annotations.of(target).get(MAPPINGS_ANNOTATION + queue.original, "{}")
        )
        arns = dict.fromkeys((*original, *temporary, *before))
        pairs = [_mapped_pair(arn, original, temporary, before) for arn in arns]
        return [one for one in pairs if one.temporary or not one.pair.is_replaced]

    def state(self, target: Target, queue: SplitQueue) -> TargetState:
        """Return which queue the function reads."""
        return combined_state(one.pair.state for one in self.pairs(target, queue))

    def switch(self, target: Target, queue: SplitQueue) -> None:
        """Switch the function to the temporary queue: create the new mapping first, then disable the old one."""
        pairs = self.pairs(target, queue)
        if not pairs:
            raise EffectRefused(f"{target} no longer has an event source mapping from queue {queue.original!r}")
        self._note(target, queue, pairs)
        for pair in pairs:
            self._follow(pair, queue, is_back=False)

    def switch_back(self, target: Target, queue: SplitQueue) -> None:
        """Switch the function back: enable the old mapping first, then delete the new one."""
        for pair in self.pairs(target, queue):
            self._follow(pair, queue, is_back=True)

    def remove(self, target: Target, queue: SplitQueue) -> None:
        """Delete the mappings on a temporary queue of a function that does not exist any more."""
        for pair in self.pairs(target, queue):
            self._follow(replace(pair, pair=replace(pair.pair, is_replaced=True)), queue, is_back=True)

    def _follow(self, mapped: FunctionMappings, queue: SplitQueue, *, is_back: bool) -> None:
        # As many steps as AWS completes at once; usually it is still working, and the next pass continues.
        step = mapped.pair.step_back if is_back else mapped.pair.step
        while step is not None:
            mapped = self._carried_out(step, mapped, queue)
            step = mapped.pair.step_back if is_back else mapped.pair.step

    def _carried_out(self, step: MappingChange, mapped: FunctionMappings, queue: SplitQueue) -> FunctionMappings:
        is_original = step in (
            MappingChange.CREATE_ORIGINAL,
            MappingChange.ENABLE_ORIGINAL,
            MappingChange.DISABLE_ORIGINAL,
        )
        name = queue.original if is_original else queue.deployed
        found = mapped.original if is_original else mapped.temporary
        with translate_write_errors(f"event source mapping from queue {name!r} to function {mapped.function_arn!r}"):
            if found is None:  # `MappingPair` requests a creation only in this case
                now = self._created(mapped, name, tags={} if is_original else self.tags)
            elif step is MappingChange.DELETE_TEMPORARY:
                now = {**self.functions.delete_event_source_mapping(UUID=found["UUID"]), "State": "Deleting"}
            else:
                is_enabled = step in (MappingChange.ENABLE_ORIGINAL, MappingChange.ENABLE_TEMPORARY)
                now = self.functions.update_event_source_mapping(UUID=found["UUID"], Enabled=is_enabled)
        if is_original:
            return replace(mapped, original=now, pair=replace(mapped.pair, original=_reading(now)))
        return replace(mapped, temporary=now, pair=replace(mapped.pair, temporary=_reading(now)))

    def _created(self, mapped: FunctionMappings, name: QueueName, *, tags: Mapping[str, str]) -> Any:  # noqa: ANN401 — AWS's
        before = mapped.before or self._described(mapped)
        return self.functions.create_event_source_mapping(
            **before["settings"],
            EventSourceArn=self.queue_arn_prefix + name,
            FunctionName=mapped.function_arn,
            Enabled=before["enabled"],
            Tags={**before["tags"], **tags},
        )

    def _note(self, target: Target, queue: SplitQueue, pairs: Sequence[FunctionMappings]) -> None:
        """Save the settings of the mappings before anything is changed, so that a lost one can be created again."""
        if any(pair.before for pair in pairs):
            return
        before = {one.function_arn: self._described(one) for one in pairs if one.original is not None}
        self.annotations.put(target, MAPPINGS_ANNOTATION + queue.original, json.dumps(before))

    def _described(self, mapped: FunctionMappings) -> dict[str, Any]:
        # At least one exists: a pair without mappings has saved settings.
        found = next(one for one in (mapped.original, mapped.temporary) if one is not None)
        with translate_write_errors(f"event source mapping {found['UUID']!r} of function {mapped.function_arn!r}"):
            # The list omits filters that are encrypted with a customer managed key.
            whole = self.functions.get_event_source_mapping(UUID=found["UUID"])
            tags = self.functions.list_tags(Resource=whole["EventSourceMappingArn"]).get("Tags", {})
        if problem := whole.get("FilterCriteriaError"):
            raise EffectRefused(
                f"the filters of event source mapping {found['UUID']!r} cannot be read, so they cannot be copied: "
                f"{problem.get('ErrorCode')}: {problem.get('Message')}"
            )
        return {
            "enabled": mapped.pair.is_enabled,
            "settings": {name: whole[name] for name in SETTINGS if whole.get(name)},  # type: ignore[literal-required]
            "tags": {key: text for key, text in tags.items() if not key.startswith(RESERVED_TAGS)},
        }


def _mapped_pair(
    arn: str, original: Mapping[str, "Mapped"], temporary: Mapping[str, "Mapped"], before: Mapping[str, Any]
) -> FunctionMappings:
    reading = _reading(original.get(arn))
    is_enabled = before[arn]["enabled"] if arn in before else reading is not MappingState.OFF
    is_replaced = arn not in original and bool(original)
    pair = MappingPair(reading, _reading(temporary.get(arn)), is_enabled=is_enabled, is_replaced=is_replaced)
    return FunctionMappings(arn, pair, original.get(arn), temporary.get(arn), before.get(arn))


def _reading(mapping: "Mapped | None") -> MappingState:
    if mapping is None:
        return MappingState.ABSENT
    return READINGS.get(mapping["State"], MappingState.CHANGING)


def _is_of(target: Target, mapping: "Mapped") -> bool:
    name, _, qualifier = target.name.partition(":")
    found = mapping.get("FunctionArn", "").split(":")[6:]
    return found[:1] == [name] and (not qualifier or found[1:] == [qualifier])
