"""Targets: the deployed consumers that Signalbox can switch to temporary queues."""

from dataclasses import dataclass
from enum import StrEnum

from signalbox.errors import RejectedError


class InvalidTarget(RejectedError):
    """Raised when a target is not of a kind that Signalbox can switch to another queue."""


class TargetKind(StrEnum):
    """The workload kinds that can be switched, as registries name them."""

    LAMBDA = "Lambda"
    ECS_SERVICE = "EcsService"
    SSM_PARAMETER = "SsmParameter"


SUPPORTED = ", ".join(TargetKind)
SHORT_NAMES = {"lambda": TargetKind.LAMBDA, "ecs": TargetKind.ECS_SERVICE, "ssm": TargetKind.SSM_PARAMETER}
KUBERNETES_KINDS = frozenset(
    {"deployment", "rollout", "statefulset", "daemonset", "pod", "job", "cronjob", "replicaset"}
)


@dataclass(frozen=True, slots=True)
class Target:
    """A workload by kind and name. An ECS service's name is `cluster/service`, a parameter's is its full path."""

    kind: TargetKind
    name: str

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Return the target in a text such as `lambda/meme-app`. Raises `InvalidTarget`."""
        kind, _, name = text.partition("/")
        if not name:
            raise InvalidTarget(f"target {text!r} has no name; expected KIND/NAME, such as lambda/meme-app")
        return cls.of(kind, name)

    @classmethod
    def of(cls, kind: str, name: str) -> "Target":
        """Return a target; `kind` is a workload kind or its short form, in any case. Raises `InvalidTarget`."""
        found = SHORT_NAMES.get(kind.lower()) or {one.lower(): one for one in TargetKind}.get(kind.lower())
        if found is None:
            where = "runs on Kubernetes, which is not" if kind.lower() in KUBERNETES_KINDS else "is not"
            raise InvalidTarget(f"workload kind {kind!r} {where} supported; supported kinds: {SUPPORTED}")
        if found is TargetKind.ECS_SERVICE and name.count("/") != 1:
            raise InvalidTarget(f"ECS service {name!r} needs its cluster: expected CLUSTER/SERVICE")
        return cls(found, name)

    def __str__(self) -> str:
        short = {kind: name for name, kind in SHORT_NAMES.items()}
        return f"{short[self.kind]}/{self.name}"
