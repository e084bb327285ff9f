"""Registry files with mirrord's `MirrordWorkloadQueueRegistry` and `MirrordSplitConfig` resources."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.consumers.registry_reader import RegistryReader, optional_section
from signalbox.splitting.forwarding.filters import Compiler
from signalbox.splitting.model.target import DEFAULT_NAMESPACE, InvalidTarget, Target
from signalbox.splitting.queues.names import DEFAULT_PREFIX

OLD, NEW, PROPERTIES = "MirrordWorkloadQueueRegistry", "MirrordSplitConfig", "MirrordPropertyList"
API_VERSIONS = {
    OLD: "queues.mirrord.metalbear.co/v1alpha",
    NEW: "queues.mirrord.metalbear.co/v1",
    PROPERTIES: "mirrord.metalbear.co/v1",
}
# Names the cluster of a Kubernetes workload, for a stage with several.
CLUSTER_ANNOTATION = "signalbox/cluster"


class InvalidRegistry(RejectedError):
    """Raised when a registry does not have the form of mirrord's resources, or uses an unsupported feature."""


def parse_registries(
    documents: Iterable[object], compiler: Compiler, *, prefix: str = DEFAULT_PREFIX, cluster: str | None = None
) -> tuple[Registry, ...]:
    """Return the registries in a file's documents, one for each target. Raises `InvalidRegistry` with all problems.

    `cluster` is that of Kubernetes workloads whose document names none.
    """
    problems = Problems()
    resources = [resource for one in enumerate(documents) if (resource := _resource(*one, problems))]
    reader = RegistryReader(compiler, prefix, dict(_property_lists(resources)))
    found = [(kind, read) for kind, section in resources if (read := _read(reader, kind, section, cluster))]
    registries = tuple(_one_a_target(found, problems))
    if not found and not problems.found:
        problems.add("file", f"holds neither a {OLD} nor a {NEW}")
    problems.refuse(InvalidRegistry)
    return registries


def _resource(number: int, document: object, problems: Problems) -> tuple[str, Section] | None:
    if document is None:
        return None  # an empty YAML document
    section = Section.of(document, f"document {number + 1}", problems)
    kind = section.text("kind")
    if kind not in API_VERSIONS:
        section.problem("kind", f"expected {OLD}, {NEW} or {PROPERTIES}, not {shown(section.fields.get('kind'))}")
        return None
    if section.fields.get("apiVersion") != API_VERSIONS[kind]:
        section.problem("apiVersion", f"expected {API_VERSIONS[kind]}, not {shown(section.fields.get('apiVersion'))}")
    return kind, section


def _read(reader: RegistryReader, kind: str, section: Section, cluster: str | None) -> Registry | None:
    section.refuse_unknown(("apiVersion", "kind", "metadata", "spec", "status"))
    if kind == PROPERTIES:
        return None
    spec = section.section("spec")
    found = reader.workload_queue_registry(spec) if kind == OLD else reader.split_config(spec)
    return _placed(found, section, cluster) if found and found.target.is_on_kubernetes else found


def _placed(registry: Registry, section: Section, cluster: str | None) -> Registry:
    """Return the registry of a Kubernetes workload with its namespace and its cluster, if that is known."""
    metadata = optional_section(section, "metadata")
    annotations = optional_section(metadata, "annotations")
    namespace, named = metadata.text("namespace") or DEFAULT_NAMESPACE, annotations.text(CLUSTER_ANNOTATION)
    try:
        return replace(registry, target=registry.target.placed(namespace, named or cluster))
    except InvalidTarget as error:
        section.problem("metadata", str(error))
        return registry


def _property_lists(resources: Iterable[tuple[str, Section]]) -> Iterator[tuple[str, Section]]:
    for kind, section in resources:
        if kind == PROPERTIES:
            yield section.section("metadata").required_text("name"), section.section("spec")


def _one_a_target(found: list[tuple[str, Registry]], problems: Problems) -> Iterator[Registry]:
    """Yield one registry for each target. Old resources are merged, as mirrord does; a new one must be the only one."""
    by_target: dict[Target, list[tuple[str, Registry]]] = {}
    for kind, registry in found:
        by_target.setdefault(registry.target, []).append((kind, registry))
    for target, same in by_target.items():
        if len(same) > 1 and any(kind == NEW for kind, _ in same):
            problems.add(str(target), f"has {len(same)} registries; a {NEW} must be the only one of its target")
        registries = [registry for _, registry in same]
        queues = tuple(queue for registry in registries for queue in registry.queues)
        for repeated in _repeated(str(queue.queue_id) for queue in queues):
            problems.add(str(target), f"queue {repeated!r} is described twice")
        yield replace(registries[0], queues=queues, switch_timeout=max(one.switch_timeout for one in registries))


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    repeated = []
    for name in names:
        if name in seen:
            repeated.append(name)
        seen.add(name)
    return repeated
