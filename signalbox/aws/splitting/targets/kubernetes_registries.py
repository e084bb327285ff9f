"""The registries that Kubernetes workloads have in their cluster, where mirrord's definitions are installed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.aws.splitting.kubernetes.api import KubernetesApi
from signalbox.splitting.consumers.property_lists import OPERATOR_NAMESPACE
from signalbox.splitting.consumers.registry_file import API_VERSIONS, NEW, OLD, PLURALS, PROPERTIES
from signalbox.splitting.consumers.registry_reader import NEW_KINDS
from signalbox.splitting.model.target import InvalidTarget, Target

KEPT_METADATA = ("name", "namespace")

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterRegistries:
    """`DeclaredRegistries` of a stage with clusters."""

    api_of: Callable[[str], KubernetesApi]

    def documents(self, target: Target) -> Sequence[object]:
        """Return the documents of a workload's registry with the property lists that its queues name.

        The lists of mirrord's operator are read only if the workload's namespace has none of that name, because the
        stage needs a further right for them.
        """
        found = [
            one
            for kind, field, of_kind in ((OLD, "consumer", "workloadType"), (NEW, "targetRef", "kind"))
            for one in self._resources(kind, target, str(target.namespace))
            if _is_of(target, one["spec"].get(field) or {}, of_kind)
        ]
        missing = {name for one in found if one["kind"] == NEW for name in _list_names(one["spec"])}
        for namespace in dict.fromkeys((str(target.namespace), OPERATOR_NAMESPACE)):
            if missing:
                lists = [one for one in self._resources(PROPERTIES, target, namespace) if _name(one) in missing]
                found += lists
                missing -= set(map(_name, lists))
        return found

    def _resources(self, kind: str, target: Target, namespace: str) -> Iterator[Document]:
        """Yield the resources of a kind in a namespace; none if the cluster has no such definition."""
        path = f"/apis/{API_VERSIONS[kind]}/namespaces/{namespace}/{PLURALS[kind]}"
        for item in (self.api_of(str(target.cluster)).get(path) or {"items": ()})["items"]:
            metadata = {name: item["metadata"][name] for name in KEPT_METADATA}
            yield {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": item.get("spec", {})}


def _list_names(spec: Document) -> Iterator[str]:
    """Yield the names of the property lists of the queues on SQS."""
    for queue in spec.get("queues") or ():
        if queue.get("kind") == NEW_KINDS[0] and queue.get("queueConfig"):
            yield queue["queueConfig"]


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _is_of(target: Target, reference: Document, kind: str) -> bool:
    try:
        found = Target.of(str(reference.get(kind)), str(reference.get("name")))
    except InvalidTarget:
        return False  # of another workload
    return (found.kind, found.workload) == (target.kind, target.workload)
