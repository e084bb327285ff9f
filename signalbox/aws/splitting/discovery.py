"""Discovery of the queues that Lambda functions and ECS services consume."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from botocore.exceptions import ClientError

from signalbox.aws.shared.errors import is_denied, translate_write_errors
from signalbox.aws.splitting.targets.lambda_environment import Configuration
from signalbox.aws.splitting.targets.original_queues import TARGETS_SETTING
from signalbox.errors import RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.consumers.discovery import Evidence, registry_documents
from signalbox.splitting.consumers.queue_reference import Home, QueueReference
from signalbox.splitting.model.target import Target, TargetKind

if TYPE_CHECKING:
    from mypy_boto3_ecs.client import ECSClient
    from mypy_boto3_iam.client import IAMClient
    from mypy_boto3_lambda.client import LambdaClient

    from signalbox.aws.splitting.targets.kubernetes import KubernetesTargets

LATEST = "$LATEST"


class NotDiscoverable(RejectedError):
    """Raised when a target does not exist, or is of a kind that consumes no queues itself."""


@dataclass(frozen=True, slots=True)
class AwsDiscovery:
    """`Discovery` by event source mappings, variables and roles' policies.

    If the policies cannot be read, variables count by their form alone.
    """

    functions: "LambdaClient"
    ecs: "ECSClient"
    iam: "IAMClient"
    home: Home
    prefix: str
    workloads: "KubernetesTargets | None" = None

    def discover(self, target: Target) -> Sequence[Mapping[str, object]]:
        """Return the documents of a registry file. Raises `RejectedError`."""
        if target.kind is TargetKind.SSM_PARAMETER:
            raise NotDiscoverable(f"{target} does not consume queues itself; write its registry by hand")
        return registry_documents(target, self._evidence(target), self.home, prefix=self.prefix)

    def _evidence(self, target: Target) -> Evidence:
        if target.kind is TargetKind.LAMBDA:
            return self._of_function(target)
        if target.is_on_kubernetes:
            if self.workloads is None:
                raise NotDiscoverable(f"{target} runs on Kubernetes, and this stage has no cluster")
            return self.workloads.evidence(target)
        return self._of_service(target)

    def _of_function(self, target: Target) -> Evidence:
        name, _, qualifier = target.name.partition(":")
        with translate_write_errors(f"function {target.name!r}", setting=TARGETS_SETTING):
            found = self.functions.get_function_configuration(FunctionName=name, Qualifier=qualifier or LATEST)
            mapped = tuple(dict.fromkeys(self._mapped(name, qualifier)))
        environments: dict[str | None, Mapping[str, str]] = {None: Configuration(found).variables}
        return Evidence(mapped, environments, self._policies(found["Role"]))

    def _mapped(self, name: str, qualifier: str) -> Iterator[QueueName]:
        # A function's name lists only its own mappings; those of its aliases are listed one by one.
        aliases = self.functions.get_paginator("list_aliases").paginate(FunctionName=name)
        arns = {alias["Name"]: alias["AliasArn"] for page in aliases for alias in page["Aliases"]}
        for function in [arns[qualifier]] if qualifier in arns else [name, *arns.values()]:
            for page in self.functions.get_paginator("list_event_source_mappings").paginate(FunctionName=function):
                sources = (QueueReference(one.get("EventSourceArn", "")) for one in page["EventSourceMappings"])
                yield from (one.queue_name for one in sources if one.text and not one.difference(self.home))

    def _of_service(self, target: Target) -> Evidence:
        cluster, _, name = target.name.partition("/")
        with translate_write_errors(f"service {target.name!r}", setting=TARGETS_SETTING):
            services = self.ecs.describe_services(cluster=cluster, services=[name])["services"]
            if not services:
                raise NotDiscoverable(f"there is no {target}")
            arn = services[0]["taskDefinition"]
            definition = self.ecs.describe_task_definition(taskDefinition=arn)["taskDefinition"]
        environments: dict[str | None, Mapping[str, str]] = {
            container["name"]: {entry["name"]: entry["value"] for entry in container.get("environment", [])}
            for container in definition["containerDefinitions"]
        }
        role = definition.get("taskRoleArn")
        return Evidence((), environments, self._policies(role) if role else None)

    def _policies(self, role_arn: str) -> list[Mapping[str, object]] | None:
        """Return a role's policies, or None if they may not be read."""
        role = role_arn.rpartition("/")[2]
        try:
            return [*self._inline(role), *self._attached(role)]
        except ClientError as error:
            if is_denied(error) or isinstance(error, self.iam.exceptions.NoSuchEntityException):
                return None
            with translate_write_errors(f"role {role!r}"):
                raise

    def _inline(self, role: str) -> Iterator[Mapping[str, object]]:
        for page in self.iam.get_paginator("list_role_policies").paginate(RoleName=role):
            for name in page["PolicyNames"]:
                yield _document(self.iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])

    def _attached(self, role: str) -> Iterator[Mapping[str, object]]:
        for page in self.iam.get_paginator("list_attached_role_policies").paginate(RoleName=role):
            for arn in (one["PolicyArn"] for one in page["AttachedPolicies"]):
                version = self.iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
                found = self.iam.get_policy_version(PolicyArn=arn, VersionId=version)
                yield _document(found["PolicyVersion"]["Document"])


def _document(policy: Any) -> Mapping[str, object]:  # noqa: ANN401 — an object by botocore, a text by emulators
    document: Mapping[str, object] = json.loads(unquote(policy)) if isinstance(policy, str) else policy
    return document
