"""Registry files with mirrord's `MirrordWorkloadQueueRegistry` and `MirrordSplitConfig` resources."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.consumers.registry_reader import RegistryConverter, optional_section, other_brokers
from signalbox.splitting.model.filters import Compiler
from signalbox.splitting.model.target import DEFAULT_NAMESPACE, Target
from signalbox.splitting.queues.names import DEFAULT_PREFIX

OLD, NEW, PROPERTIES = "MirrordWorkloadQueueRegistry", "MirrordSplitConfig", "MirrordPropertyList"
API_VERSIONS = {
    OLD: "queues.mirrord.metalbear.co/v1alpha",
    NEW: "queues.mirrord.metalbear.co/v1",
    PROPERTIES: "mirrord.metalbear.co/v1",
}
PLURALS = {
    OLD: "mirrordworkloadqueueregistries",
    NEW: "mirrordsplitconfigs",
    PROPERTIES: "mirrordpropertylists",
}
LIST = "List"  # what kubectl prints for several resources
# mirrord: a registry in the namespace of its operator, for a workload in another.
NAMESPACE_ANNOTATION = "mirrord.metalbear.co/target-namespace"
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
    resources = list(_resources(documents, problems))
    reader = RegistryConverter(compiler, prefix, dict(_property_lists(resources)))
    found = [(kind, read) for kind, section in resources if (read := _read(reader, kind, section, cluster))]
    registries = tuple(_one_a_target([(kind, read) for kind, read in found if read.queues], problems))
    if not registries and not problems.found:
        problems.add("file", f"holds neither a {OLD} nor a {NEW} with a queue on SQS")
    problems.refuse(InvalidRegistry)
    return registries


def documents_of(
    documents: Iterable[object], target: Target, compiler: Compiler, *, cluster: str | None
) -> list[Mapping[str, object]]:
    """Return the documents of a valid file that describe a target, with all of the file's property lists."""
    resources = list(_resources(documents, Problems()))
    reader = RegistryConverter(compiler, DEFAULT_PREFIX, dict(_property_lists(resources)))
    registries = [(_read(reader, kind, section, cluster), section) for kind, section in resources]
    return [section.fields for read, section in registries if read is None or read.target == target]


def queues_of_other_brokers(documents: Iterable[object]) -> list[str]:
    """Return the id and kind of each queue of a file that is not on SQS, and so is ignored."""
    specs = (section.section("spec") for _, section in _resources(documents, Problems()))
    return [name for spec in specs for name in other_brokers(spec)]


def _resources(documents: Iterable[object], problems: Problems) -> Iterator[tuple[str, Section]]:
    for number, document in enumerate(documents):
        if document is not None:  # an empty YAML document
            section = Section.of(document, f"document {number + 1}", problems)
            for one in section.sections("items") if section.fields.get("kind") == LIST else (section,):
                yield from _resource(one)


def _resource(section: Section) -> Iterator[tuple[str, Section]]:
    kind = section.text("kind")
    if kind not in API_VERSIONS:
        section.problem("kind", f"expected {OLD}, {NEW} or {PROPERTIES}, not {shown(section.fields.get('kind'))}")
        return
    if section.fields.get("apiVersion") != API_VERSIONS[kind]:
        section.problem("apiVersion", f"expected {API_VERSIONS[kind]}, not {shown(section.fields.get('apiVersion'))}")
    yield kind, section


def _read(reader: RegistryConverter, kind: str, section: Section, cluster: str | None) -> Registry | None:
    section.refuse_unknown(("apiVersion", "kind", "metadata", "spec", "status"))
    if kind == PROPERTIES:
        return None
    spec = section.section("spec")
    namespace = _namespace(section)
    found = reader.workload_queue_registry(spec) if kind == OLD else reader.split_config(spec, namespace)
    return _placed(found, section, cluster) if found and found.target.is_on_kubernetes else found


def _placed(registry: Registry, section: Section, cluster: str | None) -> Registry:
    """Return the registry of a Kubernetes workload with its namespace and its cluster, if that is known."""
    named = _annotations(section).text(CLUSTER_ANNOTATION)
    namespace, target = _namespace(section), registry.target
    placed = section.attempt("metadata", lambda: target.placed(namespace, named or cluster), default=target)
    return replace(registry, target=placed)


def _namespace(section: Section) -> str:
    """Return the namespace of a resource's target."""
    named = _annotations(section).text(NAMESPACE_ANNOTATION)
    return named or optional_section(section, "metadata").text("namespace") or DEFAULT_NAMESPACE


def _annotations(section: Section) -> Section:
    return optional_section(optional_section(section, "metadata"), "annotations")


def _property_lists(resources: Iterable[tuple[str, Section]]) -> Iterator[tuple[tuple[str, str], Section]]:
    for kind, section in resources:
        if kind == PROPERTIES:
            name = section.section("metadata").required_text("name")
            yield (_namespace(section), name), section.section("spec")


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
