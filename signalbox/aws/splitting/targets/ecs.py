"""ECS services as targets: switched by a new task definition revision and a rolling deployment."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from signalbox.aws.shared.errors import translate_read_errors, translate_write_errors
from signalbox.aws.splitting.targets import original_queues
from signalbox.aws.splitting.targets.task_definition import (
    REPLACES_TAG,
    TARGET_TAG,
    Environments,
    TaskDefinition,
    flattened,
)
from signalbox.errors import EffectRefused, RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import ConsumedQueue, Registry
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target

if TYPE_CHECKING:
    from mypy_boto3_ecs.client import ECSClient
    from mypy_boto3_ecs.type_defs import RegisterTaskDefinitionRequestTypeDef, ServiceTypeDef

ROLLING = "ECS"  # the deployment controller that allows UpdateService with another task definition
REGISTER = "RegisterTaskDefinition"


class UnsuitableService(RejectedError):
    """Raised when an ECS service does not exist, or its task definition cannot be changed."""


@dataclass(frozen=True, slots=True)
class EcsTargets:
    """`Targets` of the kind `EcsService`.

    A switched revision has a tag with the ARN of the revision that it replaces, and nothing else is stored: a new
    deployment during the split has no such tag, and is switched again.
    """

    ecs: "ECSClient"
    originals: original_queues.OriginalQueues
    resolver: Resolver

    def find(self, registry: Registry) -> Sequence[ConsumedQueue]:
        """Return the queues that a service consumes. Raises `UnsuitableService` and `UnresolvedQueue`."""
        with translate_write_errors(str(registry.target), setting=original_queues.TARGETS_SETTING):
            definition = self._definition(self._suitable(registry.target)["taskDefinition"])
        found = self.originals.found(registry, definition.queue_names)
        split = registry.of(queue.queue_id for queue in found)
        flattened(definition.renamed(split, {}))  # raises for variables that a local command could not be given
        return found

    def environment(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Mapping[str, str]:
        """Return the variables for a local command: the values before the split with the queue names replaced."""
        with translate_write_errors(str(registry.target)):
            definition = self._definition(self._suitable(registry.target)["taskDefinition"])
            before = self._definition(definition.replaces) if definition.replaces else definition
        if before.family != definition.family:  # the tag is not of a split
            before = definition
        with original_queues.queues_of_split(registry.target, names) as check:
            check(self._names(before, registry))
            return flattened(before.renamed(registry, names))

    def observe(self, split: Split, registry: Registry) -> TargetState:
        """Return which queues the service's tasks read.

        The requested state counts after the switch when the deployment is complete and no older task runs, or no task
        at all; after the switch back, when no task reads a temporary queue.
        """
        with translate_read_errors(str(split.target)):
            service = self._service(split.target)
            return TargetState.GONE if service is None else self._state(service, split, registry)

    def switch(self, split: Split, registry: Registry) -> None:
        """Deploy a revision that reads the temporary queues."""
        with original_queues.switch_errors(split.target):
            current = self._definition(self._suitable(split.target)["taskDefinition"])
            originals = {queue.original for queue in split.queues}
            changed = current.renamed(registry, original_queues.deployed_names(split))
            if originals.isdisjoint(self._names(current, registry)):
                raise EffectRefused(f"{split.target} no longer reads the queues with which its split began")
            arn = self._left_over(current, changed, split.target)
            self._give(split.target, arn or self._register(current, changed, split.target, replaces=current.arn))

    def switch_back(self, split: Split, registry: Registry) -> None:
        """Deploy the previous revision again, or a copy of the current one with the original names."""
        with original_queues.switch_errors(split.target):
            current = self._definition(self._suitable(split.target)["taskDefinition"])
            before = self._definition(current.replaces) if current.replaces else None
            if before is not None and before.is_active and self._was_switched(before, current, split, registry):
                self._give(split.target, before.arn)
            else:
                changed = current.renamed(registry, original_queues.original_names(split))
                self._give(split.target, self._register(current, changed, split.target))
            if current.replaces and current.is_active:
                # Otherwise a deployment of the family's newest revision would use it.
                self.ecs.deregister_task_definition(taskDefinition=current.arn)

    def _state(self, service: "ServiceTypeDef", split: Split, registry: Registry) -> TargetState:
        state = self._reads(service["taskDefinition"], split, registry)
        is_wanted = state is (TargetState.TEMPORARY if original_queues.is_switching(split) else TargetState.ORIGINAL)
        if not is_wanted:
            return state
        running = {one["taskDefinition"] for one in service["deployments"] if one["runningCount"] + one["pendingCount"]}
        is_everywhere = all(self._reads(arn, split, registry) is state for arn in running)
        is_settled = not original_queues.is_switching(split) or _is_complete(service)
        return state if is_everywhere and is_settled else TargetState.CHANGING

    def _was_switched(self, before: TaskDefinition, current: TaskDefinition, split: Split, registry: Registry) -> bool:
        """Return whether a switch made the current revision of `before`; its tag is no proof."""
        try:
            changed = before.renamed(registry, original_queues.deployed_names(split))
        except UnresolvedQueue:
            return False
        return before.is_replaced_by(current, changed, self._accepted)

    def _left_over(self, current: TaskDefinition, changed: Environments, target: Target) -> str | None:
        """Return the revision that an interrupted switch left; deregister one of an earlier split."""
        try:
            newest = self._definition(current.family)
        except self.ecs.exceptions.ClientException:
            return None  # the family has no active revision, not even the service's own
        if newest.arn == current.arn or newest.replaces is None or newest.tags.get(TARGET_TAG) != str(target):
            return None
        if newest.replaces == current.arn and current.is_replaced_by(newest, changed, self._accepted):
            return newest.arn
        self.ecs.deregister_task_definition(taskDefinition=newest.arn)
        return None

    def _register(
        self, like: TaskDefinition, changed: Environments, target: Target, *, replaces: str | None = None
    ) -> str:
        tags = {REPLACES_TAG: replaces, TARGET_TAG: str(target)} if replaces else {}
        # The description is registered again with the fields that both operations have.
        request = cast("RegisterTaskDefinitionRequestTypeDef", like.with_variables(changed, tags, self._accepted))
        return self.ecs.register_task_definition(**request)["taskDefinition"]["taskDefinitionArn"]

    @property
    def _accepted(self) -> Collection[str]:
        """Return the fields of RegisterTaskDefinition."""
        shape = self.ecs.meta.service_model.operation_model(REGISTER).input_shape
        return shape.members if shape else ()

    def _give(self, target: Target, arn: str) -> None:
        cluster, service = _names(target)
        self.ecs.update_service(cluster=cluster, service=service, taskDefinition=arn)

    def _reads(self, arn: str, split: Split, registry: Registry) -> TargetState:
        definition = self._definition(arn)
        try:
            return original_queues.target_state(self._names(definition, registry), split)
        except UnresolvedQueue:
            return TargetState.ORIGINAL  # deployed anew without a registered variable, so it reads no temporary queue

    def _names(self, definition: TaskDefinition, registry: Registry) -> set[QueueName]:
        return {name for queue in registry.queues for name in definition.queue_names(queue)}

    def _definition(self, arn: str) -> TaskDefinition:
        return TaskDefinition(self.ecs.describe_task_definition(taskDefinition=arn, include=["TAGS"]), self.resolver)

    def _suitable(self, target: Target) -> "ServiceTypeDef":
        service = self._service(target)
        if service is None:
            raise UnsuitableService(f"{target}: there is no such ECS service in this region")
        controller = service.get("deploymentController", {"type": ROLLING})["type"]
        if controller != ROLLING:
            raise UnsuitableService(
                f"{target}: its deployment controller is {controller}, which does not allow other clients to "
                "change its task definition; use the controller ECS (rolling update), or split by an SSM parameter"
            )
        return service

    def _service(self, target: Target) -> "ServiceTypeDef | None":
        cluster, service = _names(target)
        try:
            found = self.ecs.describe_services(cluster=cluster, services=[service])["services"]
        except self.ecs.exceptions.ClusterNotFoundException:
            return None
        return next((one for one in found if one["status"] == "ACTIVE"), None)


def _names(target: Target) -> tuple[str, str]:
    cluster, _, service = target.name.partition("/")
    return cluster, service


def _is_complete(service: "ServiceTypeDef") -> bool:
    """Return whether the newest deployment is complete; a service scaled to zero has nothing to deploy."""
    newest = next((one for one in service["deployments"] if one["status"] == "PRIMARY"), None)
    return service["desiredCount"] == 0 or (newest is not None and newest.get("rolloutState") == "COMPLETED")
