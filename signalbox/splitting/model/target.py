"""Targets: the deployed consumers that Signalbox can switch to temporary queues."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from signalbox.errors import RejectedError


class InvalidTarget(RejectedError):
    """Raised when a target is not of a kind that Signalbox can switch to another queue."""


class TargetKind(StrEnum):
    """The workload kinds that can be switched, as registries name them."""

    LAMBDA = "Lambda"
    ECS_SERVICE = "EcsService"
    SSM_PARAMETER = "SsmParameter"
    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    ROLLOUT = "Rollout"
    """Of Argo Rollouts."""


SUPPORTED = ", ".join(TargetKind)
SHORT_NAMES = {
    "lambda": TargetKind.LAMBDA,
    "ecs": TargetKind.ECS_SERVICE,
    "ssm": TargetKind.SSM_PARAMETER,
    "deployment": TargetKind.DEPLOYMENT,
    "statefulset": TargetKind.STATEFUL_SET,
    "rollout": TargetKind.ROLLOUT,
}
ALIASES = {
    "deploy": TargetKind.DEPLOYMENT,
    "deployments": TargetKind.DEPLOYMENT,
    "sts": TargetKind.STATEFUL_SET,
    "statefulsets": TargetKind.STATEFUL_SET,
    "ro": TargetKind.ROLLOUT,
    "rollouts": TargetKind.ROLLOUT,
}
"""The plural and short names of Kubernetes kinds that kubectl accepts, too."""
KUBERNETES = frozenset({TargetKind.DEPLOYMENT, TargetKind.STATEFUL_SET, TargetKind.ROLLOUT})
UNSUPPORTED_KUBERNETES_KINDS = frozenset(
    {"daemonset", "ds", "pod", "po", "job", "cronjob", "cj", "replicaset", "rs", "service", "svc"}
)
DEFAULT_NAMESPACE = "default"
CONTAINER = "container"
EXPECTED = "NAME[@NAMESPACE[.CLUSTER]][/CONTAINER]"

# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
LABEL = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
SUBDOMAIN = re.compile(rf"(?=.{{1,253}}\Z){LABEL}(?:\.{LABEL})*")
LABEL_PATTERN = re.compile(LABEL)
CLUSTER_PATTERN = re.compile(r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,98}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Target:
    """A workload by kind and name.

    An ECS service's name is `cluster/service`, a parameter's is its full path, a Kubernetes workload's is
    `name@namespace.cluster`, of which `completed_target` adds the parts that a user leaves out. `container` restricts a
    session to the variables of one container; it is no part of the target's identity.
    """

    kind: TargetKind
    name: str
    container: str | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Return the target in a text such as `lambda/meme-app`. Raises `InvalidTarget`."""
        kind, _, name = text.partition("/")
        if not name:
            raise InvalidTarget(f"target: expected KIND/NAME, such as lambda/meme-app, not {text!r}")
        return cls.of(kind, name)

    @classmethod
    def of(cls, kind: str, name: str) -> "Target":
        """Return a target; `kind` is a workload kind in any case, or a short form of it. Raises `InvalidTarget`."""
        # kubectl also takes a kind with its API group, such as `deployments.apps`.
        word = kind.lower().removesuffix(".apps").removesuffix(".argoproj.io")
        found = (SHORT_NAMES | ALIASES | {one.lower(): one for one in TargetKind}).get(word)
        if found is None:
            of_kubernetes = word in UNSUPPORTED_KUBERNETES_KINDS
            where = "of Kubernetes cannot be switched and is not" if of_kubernetes else "is not"
            raise InvalidTarget(f"workload kind {kind!r} {where} supported; supported kinds: {SUPPORTED}")
        if found is TargetKind.ECS_SERVICE and name.count("/") != 1:
            raise InvalidTarget(f"ECS service {name!r} needs its cluster: expected CLUSTER/SERVICE")
        if found in KUBERNETES:
            return _workload(found, name)
        return cls(found, name)

    @property
    def is_on_kubernetes(self) -> bool:
        """Return whether the target runs in a Kubernetes cluster."""
        return self.kind in KUBERNETES

    @property
    def workload(self) -> str:
        """Return the name of a Kubernetes workload in its namespace."""
        return self.name.partition("@")[0]

    @property
    def namespace(self) -> str | None:
        """Return the namespace of a Kubernetes workload, if it is given."""
        return self.name.partition("@")[2].partition(".")[0] or None

    @property
    def cluster(self) -> str | None:
        """Return the cluster of a Kubernetes workload, if it is given."""
        return self.name.partition("@")[2].partition(".")[2] or None

    @property
    def with_container(self) -> str:
        """Return the target as a text that has the container too."""
        return f"{self}/{CONTAINER}/{self.container}" if self.container else str(self)

    def placed(self, namespace: str | None, cluster: str | None) -> "Target":
        """Return a Kubernetes workload in a namespace and a cluster, where it has none yet. Raises `InvalidTarget`."""
        namespace, cluster = self.namespace or namespace, self.cluster or cluster
        if namespace is None:
            return self
        _check_parts(str(self), [("namespace", namespace, LABEL_PATTERN)])
        _check_parts(str(self), [("cluster", cluster, CLUSTER_PATTERN)] if cluster else [])
        return replace(self, name=f"{self.workload}@{'.'.join(part for part in (namespace, cluster) if part)}")

    def __str__(self) -> str:
        short = {kind: name for name, kind in SHORT_NAMES.items()}
        return f"{short[self.kind]}/{self.name}"


def completed_target(target: Target, known: Iterable[Target], clusters: Sequence[str]) -> Target:
    """Return a Kubernetes workload with its namespace and cluster; other targets stay as they are.

    What the text leaves out is that of the only known workload of this name, otherwise the namespace `default` and the
    first cluster. Raises `InvalidTarget` if several are known and none is in that place.
    """
    if not target.is_on_kubernetes or target.cluster:
        return target
    if not clusters:
        raise InvalidTarget(f"{target} runs on Kubernetes, and this stage has no cluster: set kubernetes_clusters")
    default = target.placed(DEFAULT_NAMESPACE, clusters[0])
    found = [one for one in known if _is_abbreviated(one, by=target)]
    if default in found or not found:
        return default
    if len(found) > 1:
        names = ", ".join(sorted(map(str, found)))
        raise InvalidTarget(f"{target} is one of several: {names}; add @NAMESPACE or @NAMESPACE.CLUSTER")
    return replace(found[0], container=target.container)


def _is_abbreviated(full: Target, *, by: Target) -> bool:
    return (full.kind, full.workload) == (by.kind, by.workload) and by.namespace in (None, full.namespace)


def _workload(kind: TargetKind, text: str) -> Target:
    name, *rest = text.split("/")
    container = rest.pop() if rest else None
    if rest not in ([], [CONTAINER]):
        raise InvalidTarget(f"{kind} {text!r}: expected {EXPECTED}")
    workload, has_place, place = name.partition("@")
    namespace, has_cluster, cluster = place.partition(".")
    parts = [("name", workload, SUBDOMAIN)]
    parts += [("container", container, LABEL_PATTERN)] if container is not None else []
    parts += [("namespace", namespace, LABEL_PATTERN)] if has_place else []
    parts += [("cluster", cluster, CLUSTER_PATTERN)] if has_cluster else []
    _check_parts(f"{kind} {text!r}", parts)
    return Target(kind, name, container)


def _check_parts(subject: str, parts: Iterable[tuple[str, str, re.Pattern[str]]]) -> None:
    for part, value, pattern in parts:
        if pattern.fullmatch(value) is None:
            raise InvalidTarget(f"{subject}: {value!r} is no {part} of Kubernetes; expected {EXPECTED}")
