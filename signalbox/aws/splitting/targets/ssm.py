"""SSM parameters as targets: consumers that read a queue name at run time are switched by a new value."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import translate_read_errors, translate_write_errors
from signalbox.aws.splitting.targets.original_queues import (
    TARGETS_SETTING,
    OriginalQueues,
    deployed_names,
    is_switching,
    original_names,
    queues_of_split,
    switch_errors,
    target_state,
)
from signalbox.errors import EffectFailed, EffectRefused, RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolution, Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import ConsumedQueue, NameSource, RegisteredQueue, Registry
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Annotations

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient
    from mypy_boto3_ssm.type_defs import ParameterHistoryTypeDef, ParameterTypeDef, PutParameterRequestTypeDef

DEFAULT_PROPAGATION = timedelta(seconds=60)
VERSION_ANNOTATION = "version"
STANDARD_BYTES, ADVANCED_BYTES = 4096, 8192  # SSM, by tier
# PutParameter resets these to their defaults unless they are given again.
KEPT = ("Description", "KeyId", "AllowedPattern", "Tier", "DataType", "Type")


class NoSuchParameter(RejectedError):
    """Raised when a target is an SSM parameter that does not exist."""


@dataclass(frozen=True, slots=True)
class SsmTargets:
    """`Targets` of the kind `SsmParameter`.

    It is unknown when all readers have read a new value: they have `propagation` to do so. Only the version of the
    value before the first switch is stored, because the value may be a secret.
    """

    ssm: "SSMClient"
    originals: OriginalQueues
    resolver: Resolver
    annotations: Annotations
    now: Callable[[], datetime]
    propagation: timedelta = DEFAULT_PROPAGATION

    def find(self, registry: Registry) -> Sequence[ConsumedQueue]:
        """Return the queues whose names a parameter contains. Raises `NoSuchParameter` and `UnresolvedQueue`."""
        with translate_write_errors(str(registry.target), setting=TARGETS_SETTING):
            value = self._parameter(registry.target)["Value"]
        return self.originals.found(registry, lambda queue: self._names_in(value, queue))

    def environment(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Mapping[str, str]:
        """Return the parameter's value with replaced names, for each variable of the registry."""
        with translate_write_errors(str(registry.target)), queues_of_split(registry.target, names) as check:
            value = self._parameter(registry.target)["Value"]
            if not self._names(value, registry) <= names.keys():
                value = self._noted_value(registry.target) or value
            check(self._names(value, registry))
            renamed = self._renamed(value, registry, names)
        variables = [source.variable for queue in registry.queues for source in queue.sources]
        return {variable: renamed for variable in variables if variable is not None}

    def observe(self, split: Split, registry: Registry) -> TargetState:
        """Return which queues the parameter's readers use; the requested state counts after `propagation`."""
        try:
            with translate_read_errors(str(split.target)):
                parameter = self._parameter(split.target)
            state = target_state(self._names(parameter["Value"], registry), split)
        except NoSuchParameter:
            return TargetState.GONE
        except UnresolvedQueue:
            state = TargetState.ORIGINAL  # the new value contains no queue name, so it is not a temporary one
        is_wanted = state is (TargetState.TEMPORARY if is_switching(split) else TargetState.ORIGINAL)
        is_fresh = self.now() - parameter["LastModifiedDate"] < self.propagation
        return TargetState.CHANGING if is_wanted and is_fresh else state

    def switch(self, split: Split, registry: Registry) -> None:
        """Write the names of the temporary queues into the parameter."""
        with switch_errors(split.target):
            parameter = self._parameter(split.target)
            names = self._names(parameter["Value"], registry)
            if names.isdisjoint(queue.original for queue in split.queues):
                raise EffectRefused(f"{split.target} no longer holds the queues with which its split began")
            self.annotations.put(split.target, VERSION_ANNOTATION, str(parameter["Version"]))
            self._write(split.target, self._renamed(parameter["Value"], registry, deployed_names(split)))

    def switch_back(self, split: Split, registry: Registry) -> None:
        """Restore the old value, or replace the temporary names in a value that was changed during the split."""
        with switch_errors(split.target):
            value, before = self._parameter(split.target)["Value"], self._noted_value(split.target)
            if before is None or self._renamed(before, registry, deployed_names(split)) != value:
                before = self._renamed(value, registry, original_names(split))
            self._write(split.target, before)

    def _names(self, value: str, registry: Registry) -> set[QueueName]:
        return {name for queue in registry.queues for name in self._names_in(value, queue)}

    def _names_in(self, value: str, queue: RegisteredQueue) -> Iterator[QueueName]:
        for source in queue.sources:
            yield from self._resolution(source, value).queue_names

    def _renamed(self, value: str, registry: Registry, names: Mapping[QueueName, QueueName]) -> str:
        for source in (source for queue in registry.queues for source in queue.sources):
            value = self.resolver.replaced(source, self._resolution(source, value), names)
        return value

    def _resolution(self, source: NameSource, value: str) -> Resolution:
        return self.resolver.in_value(source, source.variable or "the parameter's value", value)

    def _parameter(self, target: Target, *, version: str = "") -> "ParameterTypeDef":
        try:
            return self.ssm.get_parameter(Name=target.name + version, WithDecryption=True)["Parameter"]
        except self.ssm.exceptions.ParameterNotFound as error:
            raise NoSuchParameter(f"{target}: there is no such parameter in this region") from error

    def _noted_value(self, target: Target) -> str | None:
        version = self.annotations.of(target).get(VERSION_ANNOTATION)
        try:
            return self._parameter(target, version=f":{version}")["Value"] if version else None
        except (self.ssm.exceptions.ParameterVersionNotFound, NoSuchParameter):
            return None  # SSM keeps the newest hundred versions

    def _write(self, target: Target, value: str) -> None:
        request = _request(self._newest(target), value)
        limit = ADVANCED_BYTES if request.get("Tier") == "Advanced" else STANDARD_BYTES
        if len(value.encode()) > limit:
            raise EffectRefused(
                f"{target}: its value would have {len(value.encode())} bytes with the temporary queues' names, and a "
                f"parameter of its tier has at most {limit}"
            )
        try:
            self.ssm.put_parameter(**request)
        except self.ssm.exceptions.TooManyUpdates as error:
            raise EffectFailed(f"{target}: TooManyUpdates: another client is writing it") from error

    def _newest(self, target: Target) -> "ParameterHistoryTypeDef":
        pages = self.ssm.get_paginator("get_parameter_history").paginate(Name=target.name)
        return max((one for page in pages for one in page["Parameters"]), key=lambda one: one["Version"])


def _request(parameter: "ParameterHistoryTypeDef", value: str) -> "PutParameterRequestTypeDef":
    """Return the PutParameter request that changes only the value."""
    request: PutParameterRequestTypeDef = {"Name": parameter["Name"], "Value": value, "Overwrite": True}
    for name in KEPT:
        if name in parameter:
            request[name] = parameter[name]  # type: ignore[literal-required] # both have each of these names
    if parameter.get("Policies"):
        policies = [json.loads(policy["PolicyText"]) for policy in parameter["Policies"]]
        request["Policies"] = json.dumps(policies)
    return request
