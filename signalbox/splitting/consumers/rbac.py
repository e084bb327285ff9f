"""The smallest role of Kubernetes with which Signalbox splits the queues of named workloads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.errors import RejectedError
from signalbox.splitting.consumers.property_lists import OPERATOR_NAMESPACE
from signalbox.splitting.model.target import Target, TargetKind

API = "rbac.authorization.k8s.io"
RESOURCES = {
    TargetKind.DEPLOYMENT: ("apps", "deployments"),
    TargetKind.STATEFUL_SET: ("apps", "statefulsets"),
    TargetKind.ROLLOUT: ("argoproj.io", "rollouts"),
}
READ = ("get", "list", "watch")
# mirrord's registries, where its resource definitions are installed.
LISTS = ("mirrord.metalbear.co", ("mirrordpropertylists",))
REGISTRIES = (("queues.mirrord.metalbear.co", ("mirrordworkloadqueueregistries", "mirrordsplitconfigs")), LISTS)

Document = Mapping[str, Any]


class InvalidRole(RejectedError):
    """Raised when a role would allow nothing, or names targets outside of one Kubernetes cluster."""


@dataclass(frozen=True, slots=True)
class RoleRights:
    """The rights of one role in each namespace of the targets."""

    targets: tuple[Target, ...]
    config_maps: tuple[str, ...] | None
    """The config maps to read, by name; None for all of the namespace."""
    reads_registries: bool
    """Whether mirrord's registries in the cluster are read."""
    reads_shared_lists: bool = False
    """Whether the property lists in the namespace of mirrord's operator are read too."""


def group(stage: str) -> Document:
    """Return the subject of a stage in clusters of EKS: the group of its access entry."""
    return {"apiGroup": API, "kind": "Group", "name": f"signalbox:{stage}"}


def service_account(text: str) -> Document:
    """Return the subject of a text `NAMESPACE/NAME`. Raises `InvalidRole`."""
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise InvalidRole(f"service account {text!r}: expected NAMESPACE/NAME")
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def role_documents(rights: RoleRights, *, name: str, subject: Document) -> list[Document]:
    """Return the roles and bindings of each namespace. Raises `InvalidRole`."""
    _check(rights.targets)
    namespaces = dict.fromkeys(target.namespace or "" for target in rights.targets)
    documents = [
        document
        for namespace in namespaces
        for document in (
            *_bound("Role", {"name": name, "namespace": namespace}, _rules(rights, namespace), subject),
            *_bound("ClusterRole", {"name": f"{name}-{namespace}"}, [_existence(namespace)], subject),
        )
    ]
    if rights.reads_shared_lists:
        # The name differs from that of the workloads in this namespace.
        metadata = {"name": f"{name}-lists", "namespace": OPERATOR_NAMESPACE}
        documents += _bound("Role", metadata, [_rule(LISTS[0], list(LISTS[1]), READ)], subject)
    return documents


def _check(targets: Iterable[Target]) -> None:
    found = tuple(targets)
    if not found:
        raise InvalidRole("the role would allow nothing: name the workloads, such as deployment/meme-app")
    if others := [str(target) for target in found if target.kind not in RESOURCES]:
        raise InvalidRole(f"not on Kubernetes: {', '.join(others)}")
    if len({target.cluster for target in found}) > 1:
        raise InvalidRole("the targets are in several clusters: each needs a role of its own")


def _bound(kind: str, metadata: Document, rules: list[Document], subject: Document) -> tuple[Document, Document]:
    reference = {"apiGroup": API, "kind": kind, "name": metadata["name"]}
    head = {"apiVersion": f"{API}/v1"}
    return (
        {**head, "kind": kind, "metadata": metadata, "rules": rules},
        {**head, "kind": f"{kind}Binding", "metadata": metadata, "roleRef": reference, "subjects": [subject]},
    )


def _existence(namespace: str) -> Document:
    # A deleted namespace takes its role along: without this right every call of it would be refused, and its splits
    # would wait for the role instead of ending.
    return _rule("", ["namespaces"], ("get",), [namespace])


def _rules(rights: RoleRights, namespace: str) -> list[Document]:
    return [
        *_workloads([target for target in rights.targets if target.namespace == namespace]),
        # Their old pods have to be gone; names of pods are not known before.
        _rule("", ["pods"], READ),
        *_config_maps(rights.config_maps),
        *(_registries() if rights.reads_registries else ()),
    ]


def _workloads(targets: Sequence[Target]) -> Iterable[Document]:
    for kind, (api_group, resource) in RESOURCES.items():
        if names := list(dict.fromkeys(target.workload for target in targets if target.kind is kind)):
            yield _rule(api_group, [resource], (*READ, "patch"), names)


def _config_maps(names: Sequence[str] | None) -> Iterable[Document]:
    if names is None:
        yield _rule("", ["configmaps"], ("get",))
    elif names:
        yield _rule("", ["configmaps"], ("get",), list(names))


def _registries() -> Iterable[Document]:
    return (_rule(api_group, list(resources), READ) for api_group, resources in REGISTRIES)


def _rule(api_group: str, resources: list[str], verbs: Sequence[str], names: list[str] | None = None) -> Document:
    rule = {"apiGroups": [api_group], "resources": resources, "verbs": list(verbs)}
    return {**rule, "resourceNames": names} if names else rule
