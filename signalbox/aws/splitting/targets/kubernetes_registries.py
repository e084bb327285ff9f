"""The registries that Kubernetes workloads have in their cluster, where mirrord's definitions are installed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.aws.splitting.kubernetes.api import KubernetesApi
from signalbox.splitting.consumers.registry_file import API_VERSIONS, NEW, OLD, PROPERTIES
from signalbox.splitting.model.target import InvalidTarget, Target

# The plural names of the definitions: https://github.com/metalbear-co/charts, mirrord-operator's CRDs.
RESOURCES = {
    OLD: "mirrordworkloadqueueregistries",
    NEW: "mirrordsplitconfigs",
    PROPERTIES: "mirrordpropertylists",
}
KEPT_METADATA = ("name", "namespace")

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterRegistries:
    """`DeclaredRegistries` of a stage with clusters."""

    api_of: Callable[[str], KubernetesApi]

    def documents(self, target: Target) -> Sequence[object]:
        """Return the documents of a workload's registry with the property lists of its namespace."""
        found = [
            one
            for kind, field, of_kind in ((OLD, "consumer", "workloadType"), (NEW, "targetRef", "kind"))
            for one in self._resources(kind, target)
            if _is_of(target, one["spec"].get(field) or {}, of_kind)
        ]
        return [*found, *self._resources(PROPERTIES, target)] if found else []

    def _resources(self, kind: str, target: Target) -> Iterator[Document]:
        """Yield the resources of a kind in the target's namespace; none if the cluster has no such definition."""
        path = f"/apis/{API_VERSIONS[kind]}/namespaces/{target.namespace}/{RESOURCES[kind]}"
        for item in (self.api_of(str(target.cluster)).get(path) or {"items": ()})["items"]:
            metadata = {name: item["metadata"][name] for name in KEPT_METADATA}
            yield {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": item.get("spec", {})}


def _is_of(target: Target, reference: Document, kind: str) -> bool:
    try:
        found = Target.of(str(reference.get(kind)), str(reference.get("name")))
    except InvalidTarget:
        return False  # of another workload
    return (found.kind, found.workload) == (target.kind, target.workload)
