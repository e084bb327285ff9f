"""Changes of a pod template: variables and annotations, as a document for server-side apply or as a JSON patch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.splitting.kubernetes.pod_template import containers_of
from signalbox.splitting.kubernetes.switch_record import ANNOTATION, Variable

Document = Mapping[str, Any]
Operation = dict[str, object]  # of a JSON patch (RFC 6902)
TEMPLATE = ("spec", "template")


@dataclass(frozen=True, slots=True)
class TemplateChange:
    """New entries of `env` by variable, None for a removed one, and the annotation of the pod template.

    `on_workload` is the annotation of the workload itself.
    """

    entries: Mapping[Variable, Document | None]
    on_template: str | None = None
    on_workload: str | None = None

    def applied(self, workload: Document) -> dict[str, object]:
        """Return the document for server-side apply, which contains exactly the fields that Signalbox manages.

        It has the version that was read, so that it overwrites no change in between.
        """
        metadata = workload["metadata"]
        containers = [
            {"name": one["name"], "env": entries}
            for one in containers_of(workload["spec"]["template"])
            if (entries := [entry for (name, _), entry in self.entries.items() if name == one["name"] and entry])
        ]
        template: dict[str, object] = _annotated(self.on_template)
        return {
            "apiVersion": workload["apiVersion"],
            "kind": workload["kind"],
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "resourceVersion": metadata["resourceVersion"],
                **_annotations(self.on_workload),
            },
            "spec": {"template": {**template, **({"spec": {"containers": containers}} if containers else {})}},
        }

    def operations(self, workload: Document) -> list[Operation]:
        """Return the JSON patch of the version that was read."""
        template = workload["spec"]["template"]
        return [
            at_version(workload),
            *self._env_operations(containers_of(template)),
            *_annotation_operations(template.get("metadata"), TEMPLATE, self.on_template),
            *_annotation_operations(workload["metadata"], (), self.on_workload),
        ]

    def _env_operations(self, containers: Sequence[Document]) -> Iterator[Operation]:
        for number, container in enumerate(containers):
            changes = {name: entry for (one, name), entry in self.entries.items() if one == container["name"]}
            if not changes:
                continue
            old = container.get("env", ())
            new = with_entries(old, changes)
            yield from _set((*TEMPLATE, "spec", "containers", str(number), "env"), old=old, new=new)


def with_entries(env: Sequence[Document], changes: Mapping[str, Document | None]) -> list[Document]:
    """Return the entries of a container's `env` with some replaced, added, or removed where they are None."""
    kept = [changes.get(entry["name"], entry) for entry in env]
    names = {entry["name"] for entry in env}
    added = [entry for name, entry in changes.items() if name not in names]
    return [entry for entry in (*kept, *added) if entry is not None]


def at_version(workload: Document) -> Operation:
    """Return the operation that makes the server refuse a patch of another version than the one that was read."""
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": workload["metadata"]["resourceVersion"]}


def _annotation_operations(metadata: Document | None, path: Sequence[str], text: str | None) -> Iterator[Operation]:
    if metadata is None:
        yield {"op": "add", "path": _pointer((*path, "metadata")), "value": {}}
    old = (metadata or {}).get("annotations") or {}
    new = {name: value for name, value in old.items() if name != ANNOTATION}
    new |= {ANNOTATION: text} if text is not None else {}
    yield from _set((*path, "metadata", "annotations"), old=old, new=new)


def _set(path: Sequence[str], *, old: object, new: object) -> Iterator[Operation]:
    """Yield the operation that sets a list or an object, or removes it when it becomes empty."""
    if new:
        yield {"op": "add", "path": _pointer(path), "value": new}
    elif old:
        yield {"op": "remove", "path": _pointer(path)}


def _pointer(path: Sequence[str]) -> str:
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)


def _annotated(text: str | None) -> dict[str, object]:
    return {"metadata": _annotations(text)} if text is not None else {}


def _annotations(text: str | None) -> dict[str, object]:
    return {"annotations": {ANNOTATION: text}} if text is not None else {}
