"""The rollout of a Kubernetes workload: whether it can be switched, and whether all of its pods follow its template."""

from collections.abc import Mapping
from typing import Any

from signalbox.splitting.model.target import TargetKind

Document = Mapping[str, Any]  # a workload as the API returns it

DEADLINE = "ProgressDeadlineExceeded"
ROLLING = "RollingUpdate"
HEALTHY, PAUSED = "Healthy", "Paused"


def unsuitability(kind: TargetKind, workload: Document) -> str | None:
    """Return why the pods of a workload would not follow a change of its template, or None."""
    spec = workload["spec"]
    if kind is TargetKind.ROLLOUT and "template" not in spec:
        return "takes its pods' template from spec.workloadRef; give the Rollout a template of its own"
    if kind is TargetKind.STATEFUL_SET:
        return _of_stateful_set(spec.get("updateStrategy") or {})
    return "is paused; resume it (kubectl rollout resume)" if spec.get("paused") else None


def obstacle(kind: TargetKind, workload: Document) -> str | None:
    """Return why a rollout will not complete by itself, or None while it may."""
    for condition in workload.get("status", {}).get("conditions", ()) if is_observed(workload) else ():
        if condition.get("reason") == DEADLINE and condition.get("status") == "False":
            return f"does not roll out: {DEADLINE}: {condition.get('message', '')}"
    return unsuitability(kind, workload)


def pause(kind: TargetKind, workload: Document) -> str | None:
    """Return why a rollout waits, or None."""
    if kind is TargetKind.ROLLOUT and workload.get("status", {}).get("phase") == PAUSED:
        return "is paused at a step of its strategy; promote it (kubectl argo rollouts promote)"
    return None


def is_observed(workload: Document) -> bool:
    """Return whether the status describes the newest specification; a Rollout's observed generation is a text."""
    return int(workload.get("status", {}).get("observedGeneration", 0)) >= int(workload["metadata"]["generation"])


def is_rolled_out(kind: TargetKind, workload: Document) -> bool:
    """Return whether all replicas that the workload has now follow its template and are available.

    A workload of zero replicas has nothing to roll out. The conditions are those of `kubectl rollout status`
    (https://github.com/kubernetes/kubectl/blob/master/pkg/polymorphichelpers/rollout_status.go) and of Argo Rollouts.
    """
    replicas, status = workload["spec"].get("replicas", 1), workload.get("status", {})
    if replicas == 0:
        return True
    if not is_observed(workload):
        return False
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", _available(kind, status))]
    if any(count != replicas for count in counts):
        return False
    if kind is TargetKind.STATEFUL_SET:
        return bool(status.get("currentRevision") == status.get("updateRevision"))
    if kind is TargetKind.ROLLOUT:
        return bool(status.get("phase") == HEALTHY and status.get("stableRS") == status.get("currentPodHash"))
    return True


def label_selector(workload: Document) -> str:
    """Return the selector of a workload's pods, as the API takes it in a query."""
    selector = workload["spec"]["selector"]
    labels = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return ",".join([*labels, *map(_expression, selector.get("matchExpressions") or ())])


def _expression(expression: Document) -> str:
    key, operator = expression["key"], expression["operator"]
    if operator in ("In", "NotIn"):
        return f"{key} {operator.lower()} ({','.join(expression['values'])})"
    return key if operator == "Exists" else f"!{key}"


def _of_stateful_set(strategy: Document) -> str | None:
    kind = strategy.get("type", ROLLING)
    if kind != ROLLING:
        return f"has the update strategy {kind}, so that its pods do not follow its template; use {ROLLING}"
    if (strategy.get("rollingUpdate") or {}).get("partition"):
        return "has an update strategy with a partition, so that not all pods follow its template; set it to 0"
    return None


def _available(kind: TargetKind, status: Document) -> str:
    # A StatefulSet counts available replicas by minReadySeconds; servers before 1.22 have no such field.
    is_counted = kind is not TargetKind.STATEFUL_SET or "availableReplicas" in status
    return "availableReplicas" if is_counted else "readyReplicas"
