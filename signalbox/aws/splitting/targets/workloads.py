"""Kubernetes workloads: read, and written at the version that was read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from signalbox.aws.splitting.kubernetes.api import ClusterRefused, KubernetesApi, ObjectChanged, PatchKind
from signalbox.errors import RejectedError
from signalbox.splitting.kubernetes.pod_template import ConfigMaps, env_entry
from signalbox.splitting.kubernetes.rollout import label_selector, unsuitability
from signalbox.splitting.kubernetes.switch_record import ANNOTATION
from signalbox.splitting.kubernetes.template_change import TemplateChange
from signalbox.splitting.model.target import SUBDOMAIN, Target, TargetKind

PATHS = {
    TargetKind.DEPLOYMENT: "/apis/apps/v1/namespaces/{}/deployments/{}",
    TargetKind.STATEFUL_SET: "/apis/apps/v1/namespaces/{}/statefulsets/{}",
    TargetKind.ROLLOUT: "/apis/argoproj.io/v1alpha1/namespaces/{}/rollouts/{}",
}
# The definition of Rollouts may have containers and variables as plain lists, which an apply would replace as a whole.
APPLIED = frozenset({TargetKind.DEPLOYMENT, TargetKind.STATEFUL_SET})
# In its first half second a rollout changes the status of its workload about ten times.
TRIES = 10

FINISHED = frozenset({"Succeeded", "Failed"})
Document = Mapping[str, Any]  # an object as the API returns it


class UnsuitableWorkload(RejectedError):
    """Raised when a Kubernetes workload does not exist, or its pods would not follow a change of its template."""


@dataclass(frozen=True, slots=True)
class Workloads:
    """The workloads of all clusters, by targets."""

    api_of: Callable[[str], KubernetesApi]

    def set_managed_fields(self, target: Target, operations: list[dict[str, object]], fields: object) -> None:
        """Execute operations of a JSON patch, and set the managers of a workload's fields."""
        operations = [*operations, {"op": "add", "path": "/metadata/managedFields", "value": fields}]
        self._api(target).patch(_path(target), operations, kind=PatchKind.JSON)

    def write(self, target: Target, workload: Document, change: TemplateChange) -> None:
        """Apply a change, by a patch where an apply cannot: it never removes `valueFrom`, which others manage."""
        pod = workload["spec"]["template"]
        before = [env_entry(pod, *key) for key in change.entries]
        has_sources = any(entry and "valueFrom" in entry for entry in (*before, *change.entries.values()))
        if target.kind in APPLIED and not has_sources:
            self._api(target).apply(_path(target), change.applied(workload), force=True)
        else:
            self._api(target).patch(_path(target), change.operations(workload), kind=PatchKind.JSON)

    def attempt(self, target: Target, work: Callable[[Document], None]) -> None:
        """Work on the newest version, again if it changed meanwhile: each step of a rollout changes the status."""
        for _ in range(TRIES - 1):
            workload = self.existing(target)
            try:
                work(workload)
            except ObjectChanged:
                continue
            return
        work(self.existing(target))

    def config_maps(self, target: Target) -> ConfigMaps:
        """Return the reader of the config maps of a target's namespace."""
        api = self._api(target)

        @cache
        def data(name: str) -> Mapping[str, str] | None:
            if SUBDOMAIN.fullmatch(name) is None:  # the pod template's author names it: `../secrets/db`
                return None
            found = api.get(f"/api/v1/namespaces/{target.namespace}/configmaps/{name}")
            return None if found is None else found.get("data") or {}

        return data

    def suitable(self, target: Target) -> Document:
        """Return a workload whose queues can be split. Raises `UnsuitableWorkload`."""
        workload = self.existing(target)
        if reason := unsuitability(target.kind, workload):
            raise UnsuitableWorkload(f"{target} {reason}")
        if ANNOTATION in annotations_of(workload["spec"]["template"]):
            raise UnsuitableWorkload(
                f"{target} has the annotation {ANNOTATION} in its pod template: another stage splits its queues; "
                "if that stage is gone, apply the workload's manifest again and remove the annotation"
            )
        return workload

    def existing(self, target: Target) -> Document:
        """Return a workload. Raises `UnsuitableWorkload` if it does not exist."""
        workload = self.find(target)
        if workload is None:
            raise UnsuitableWorkload(
                f"{target}: cluster {target.cluster!r} has no {target.kind} {target.workload!r} in namespace "
                f"{target.namespace!r}"
            )
        return workload

    def has_namespace(self, target: Target) -> bool:
        """Return whether a target's namespace exists; True if the stage may not read it."""
        try:
            return self._api(target).get(f"/api/v1/namespaces/{target.namespace}") is not None
        except ClusterRefused:
            return True

    def running_pods(self, target: Target, workload: Document) -> Sequence[Document]:
        """Return the pods of a workload that are not finished."""
        path = f"/api/v1/namespaces/{target.namespace}/pods"
        pods = self._api(target).get(path, labelSelector=label_selector(workload)) or {"items": ()}
        return [pod for pod in pods["items"] if pod.get("status", {}).get("phase") not in FINISHED]

    def find(self, target: Target) -> Document | None:
        """Return a workload, or None."""
        return self._api(target).get(_path(target))

    def _api(self, target: Target) -> KubernetesApi:
        return self.api_of(str(target.cluster))


def annotations_of(document: Document) -> Mapping[str, str]:
    """Return the annotations of a workload or of a pod template."""
    found: Mapping[str, str] = document.get("metadata", {}).get("annotations") or {}
    return found


def _path(target: Target) -> str:
    return PATHS[target.kind].format(target.namespace, target.workload)
