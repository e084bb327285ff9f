"""The targets of the function `control`: consumers on Lambda, ECS, SSM and Kubernetes, and the clusters of these."""

from functools import cache
from typing import TYPE_CHECKING

from lambdas.shared import instance
from lambdas.splitting import wiring
from signalbox.aws.splitting.target_notes import DynamoAnnotations
from signalbox.aws.splitting.targets.ecs import EcsTargets
from signalbox.aws.splitting.targets.lambdas import LambdaTargets
from signalbox.aws.splitting.targets.original_queues import OriginalQueues
from signalbox.aws.splitting.targets.ssm import SsmTargets
from signalbox.filters.languages import Languages
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG
from signalbox.splitting.consumers.environment import Resolver
from signalbox.splitting.consumers.queue_reference import Home
from signalbox.splitting.control.ports import DeclaredRegistries, NothingDeclared
from signalbox.splitting.model.events import CAPABILITY
from signalbox.splitting.model.target import KUBERNETES, TargetKind
from signalbox.splitting.ports import Targets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signalbox.aws.splitting.kubernetes.api import KubernetesApi
    from signalbox.aws.splitting.kubernetes.settings import ClusterSetting
    from signalbox.aws.splitting.targets.kubernetes import KubernetesTargets

NO_CLUSTERS = "{}"


def stage() -> str:
    """Return the stage's name."""
    return instance.settings().text("STAGE")


def prefix() -> str:
    """Return the prefix of the names of temporary queues."""
    return instance.settings().text("TEMPORARY_QUEUE_PREFIX")


@cache
def clusters() -> "Mapping[str, ClusterSetting]":
    """Return the Kubernetes clusters of the stage, in the order of the setting; the first is the default."""
    text = instance.settings().text("KUBERNETES_CLUSTERS")
    if text == NO_CLUSTERS:
        return {}
    from signalbox.aws.splitting.kubernetes.settings import parse_clusters  # noqa: PLC0415 - most stages have none

    return parse_clusters(text)


@cache
def api_of(cluster: str) -> "KubernetesApi":
    """Return the API of a cluster of the stage. Raises `ClusterRefused` for another."""
    import boto3  # noqa: PLC0415 - few stages have clusters

    from signalbox.aws.splitting.kubernetes.clusters import Clusters  # noqa: PLC0415 - as above

    return Clusters(clusters(), boto3.Session(), instance.CLOCK.now).api_of(cluster)


def declared_registries() -> DeclaredRegistries:
    """Return the registries that are declared in the clusters."""
    if not clusters():
        return NothingDeclared()
    from signalbox.aws.splitting.targets.kubernetes_registries import ClusterRegistries  # noqa: PLC0415 - as above

    return ClusterRegistries(api_of)


@cache
def languages() -> Languages:
    """Return the languages of filters."""
    return Languages()


@cache
def workloads() -> "KubernetesTargets | None":
    """Return the workloads of the clusters; None without a cluster."""
    if not clusters():
        return None
    from signalbox.aws.splitting.targets.kubernetes import KubernetesTargets  # noqa: PLC0415 - as above
    from signalbox.aws.splitting.targets.workloads import Workloads  # noqa: PLC0415

    annotations, originals = DynamoAnnotations(wiring.table()), OriginalQueues(instance.sqs())
    return KubernetesTargets(Workloads(api_of), originals, _resolver(), annotations, instance.CLOCK.now)


def by_kind() -> dict[TargetKind, Targets]:
    """Return the targets of each kind."""
    resolver, in_clusters = _resolver(), workloads()
    originals, annotations = OriginalQueues(instance.sqs()), DynamoAnnotations(wiring.table())
    tags = {STAGE_TAG: stage(), CAPABILITY_TAG: CAPABILITY}
    return {
        TargetKind.LAMBDA: LambdaTargets(
            instance.functions(), originals, annotations, resolver, queue_arn_prefix(), tags
        ),
        TargetKind.ECS_SERVICE: EcsTargets(instance.aws_client("ecs"), originals, resolver),
        TargetKind.SSM_PARAMETER: SsmTargets(
            instance.aws_client("ssm"),
            originals,
            resolver,
            annotations,
            instance.CLOCK.now,
            propagation=instance.settings().seconds("SPLIT_PARAMETER_SECONDS"),
        ),
        **(dict.fromkeys(KUBERNETES, in_clusters) if in_clusters else {}),
    }


def _resolver() -> Resolver:
    return Resolver(languages(), home())


def home() -> Home:
    """Return the account and region of the stage."""
    return Home.of_arn(queue_arn_prefix())


def queue_arn_prefix() -> str:
    """Return the beginning of the ARNs of the stage's queues."""
    return instance.settings().text("TEMPORARY_QUEUE_ARN_PREFIX").removesuffix(prefix())
