"""Task definitions: finding and replacing queue names in the variables of containers."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from signalbox.errors import RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolution, Resolver, UnresolvedQueue, unread
from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind

if TYPE_CHECKING:
    from mypy_boto3_ecs.type_defs import ContainerDefinitionOutputTypeDef, DescribeTaskDefinitionResponseTypeDef

REPLACES_TAG = "signalbox:replaces"
TARGET_TAG = "signalbox:target"
MAXIMUM_TAGS = 50  # ECS, of one resource
RESERVED_TAGS = "aws:"

Environments = dict[str, dict[str, str]]  # by container


class AmbiguousVariable(RejectedError):
    """Raised when two containers have different values for a variable, because a local command has only one."""


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """A revision of a task definition, as ECS describes it."""

    answer: "DescribeTaskDefinitionResponseTypeDef"
    resolver: Resolver

    @property
    def arn(self) -> str:
        """Return the ARN, including the revision."""
        return self.answer["taskDefinition"]["taskDefinitionArn"]

    @property
    def family(self) -> str:
        """Return the name of the family."""
        return self.answer["taskDefinition"]["family"]

    @property
    def is_active(self) -> bool:
        """Return whether a service can be updated to this revision."""
        return self.answer["taskDefinition"]["status"] == "ACTIVE"

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags."""
        return {tag["key"]: tag["value"] for tag in self.answer.get("tags", [])}

    @property
    def replaces(self) -> str | None:
        """Return the ARN of the revision that this one replaces during a split, or None."""
        return self.tags.get(REPLACES_TAG)

    @property
    def environments(self) -> Environments:
        """Return the variables of each container."""
        return {
            container["name"]: {entry["name"]: entry["value"] for entry in container.get("environment", [])}
            for container in self._containers
        }

    def queue_names(self, queue: RegisteredQueue) -> Iterator[QueueName]:
        """Yield the queues of one queue id, which may repeat. Raises `UnresolvedQueue`."""
        for source in queue.sources:
            for _, resolution in self._resolutions(source, self.environments):
                yield from resolution.queue_names

    def renamed(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Environments:
        """Return the variables with queue names, with the names replaced. Raises `UnresolvedQueue`."""
        environments = self.environments
        changed: Environments = {container: {} for container in environments}
        for source in (source for queue in registry.queues for source in queue.sources):
            for container, resolution in list(self._resolutions(source, environments)):
                value = self.resolver.replaced(source, resolution, names)
                # The next source may read the same variable and must keep the replaced names.
                environments[container][resolution.variable] = changed[container][resolution.variable] = value
        return changed

    def settings(self, accepted: Collection[str]) -> dict[str, object]:
        """Return the fields of a registration without tags and variables."""
        document = cast("dict[str, object]", self.answer["taskDefinition"])
        containers = [{**one, "environment": []} for one in self._containers]
        found = {name: value for name, value in document.items() if name in accepted}
        return found | {"containerDefinitions": containers}

    def is_replaced_by(self, other: "TaskDefinition", changed: Environments, accepted: Collection[str]) -> bool:
        """Return whether another revision differs from this one in these variables alone."""
        wanted = {container: own | changed[container] for container, own in self.environments.items()}
        return other.environments == wanted and other.settings(accepted) == self.settings(accepted)

    def with_variables(
        self, changed: Environments, tags: Mapping[str, str], accepted: Collection[str]
    ) -> dict[str, object]:
        """Return the registration request for a copy in which only the given variables are changed or added.

        `accepted` are the fields of RegisterTaskDefinition; the other described fields are set by ECS.
        """
        document = cast("dict[str, object]", self.answer["taskDefinition"])
        request = {name: value for name, value in document.items() if name in accepted}
        request["containerDefinitions"] = [_with_variables(one, changed[one["name"]]) for one in self._containers]
        own = {name: value for name, value in self.tags.items() if name not in tags and _is_copied(name)}
        merged = [*tags.items(), *own.items()][:MAXIMUM_TAGS]
        if merged:
            request["tags"] = [{"key": name, "value": value} for name, value in merged]
        return request

    @property
    def _containers(self) -> "list[ContainerDefinitionOutputTypeDef]":
        return self.answer["taskDefinition"]["containerDefinitions"]

    def _resolutions(self, source: NameSource, environments: Environments) -> Iterator[tuple[str, Resolution]]:
        chosen = self._chosen(source)
        for container in chosen:
            self._refuse_secrets(source, container)
        having = [one["name"] for one in chosen if self._matching(source, environments[one["name"]])]
        if not having:
            self._refuse_files(source, chosen)
        for name in having or [one["name"] for one in chosen]:
            for resolution in self.resolver.resolve(source, environments[name]):
                yield name, resolution

    def _chosen(self, source: NameSource) -> "list[ContainerDefinitionOutputTypeDef]":
        unknown = set(source.containers) - {container["name"] for container in self._containers}
        if unknown:
            known = ", ".join(container["name"] for container in self._containers)
            raise UnresolvedQueue(f"{self.arn} has no container {', '.join(sorted(unknown))}; it has {known}")
        return [one for one in self._containers if not source.containers or one["name"] in source.containers]

    def _refuse_secrets(self, source: NameSource, container: "ContainerDefinitionOutputTypeDef") -> None:
        found = self._matching(source, (secret["name"] for secret in container.get("secrets", [])))
        if found:
            # A task gets the value of a secret when it starts, so that switching the parameter would not reach it
            # (ECS developer guide, "Pass sensitive data to an Amazon ECS container").
            raise UnresolvedQueue(
                f"variable {found[0]!r} of container {container['name']!r} comes from a secret, which is not read: "
                "add the queue's name to `environment` of the container and remove it from `secrets`, or let the "
                "program read an SSM parameter at run time and split that one, as ssm/NAME"
            )

    def _refuse_files(self, source: NameSource, chosen: "list[ContainerDefinitionOutputTypeDef]") -> None:
        for container in chosen:
            if container.get("environmentFiles"):
                raise unread(source)(
                    f"variable {source.key!r} is not in `environment` of container {container['name']!r}, which takes "
                    "others from files in S3 (`environmentFiles`), which are not read: add the queue's name to "
                    "`environment`, which counts more than a file, or name another container in the registry"
                )

    def _matching(self, source: NameSource, variables: Iterable[str]) -> list[str]:
        if source.kind is not SourceKind.VARIABLES_LIKE:
            return [name for name in variables if name == source.key]
        pattern = self.resolver.compiler.pattern(source.key, case_sensitive=True)
        return [name for name in variables if pattern.matches(name)]


def flattened(environments: Environments) -> dict[str, str]:
    """Return the environment of a local command. Raises `AmbiguousVariable`."""
    flat: dict[str, str] = {}
    for container, variables in environments.items():
        for name, value in variables.items():
            if flat.setdefault(name, value) != value:
                raise AmbiguousVariable(
                    f"variable {name!r} of container {container!r} has different values in different containers; "
                    "name the container in the registry"
                )
    return flat


def _with_variables(
    container: "ContainerDefinitionOutputTypeDef", changed: Mapping[str, str]
) -> "ContainerDefinitionOutputTypeDef":
    if not changed:
        return container
    variables = {entry["name"]: entry["value"] for entry in container.get("environment", [])} | {**changed}
    return {**container, "environment": [{"name": name, "value": value} for name, value in variables.items()]}


def _is_copied(tag: str) -> bool:
    return not tag.startswith(RESERVED_TAGS) and tag not in (REPLACES_TAG, TARGET_TAG)
