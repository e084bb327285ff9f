"""The registries of targets: applied ones, and those that Kubernetes workloads have in their cluster."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.clock import Clock
from signalbox.control.delivery import CommandDelivery
from signalbox.errors import RejectedError
from signalbox.nearest import suggestion
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.control.ports import DeclaredRegistries, NoRegistry
from signalbox.splitting.control.registry_reader import RegistryReader
from signalbox.splitting.model.target import InvalidTarget, Target, completed_target
from signalbox.splitting.ports import APPLIED, Registries, StoredRegistry

MAXIMUM_DOCUMENT_BYTES = 100_000  # of one registry, which is part of its split's item: DynamoDB's limit is 400 KB


class RegistryTooLarge(RejectedError):
    """Raised when a registry is too large to be stored."""


@dataclass(frozen=True, slots=True)
class RegistryService:
    """Stores, lists and finds registries."""

    stored: Registries
    reader: RegistryReader
    declared: DeclaredRegistries
    clock: Clock

    def apply(self, documents: Sequence[object]) -> list[Target]:
        """Store the registries in a file's documents and return their targets. Raises `RejectedError`."""
        targets = [self._known_place(registry.target) for registry in self.reader.parsed(documents)]
        of_target = {target: self.reader.documents_of(documents, target) for target in targets}
        now = self.clock.now()
        stored = [StoredRegistry(target, found, now) for target, found in of_target.items()]
        for one in stored:
            _check_size(one)
        for one in stored:
            self.stored.put(one)
        return targets

    def remove(self, target: Target, delivery: CommandDelivery) -> None:
        """Remove a target's registry; a running split keeps it. Raises `Overtaken`, and `NoRegistry` without one."""
        stored = self.stored.find(target)
        if stored is None:
            known = ", ".join(str(one.target) for one in self.stored.every()) or "none"
            raise NoRegistry(f"{target} has no registry; targets with a registry: {known}")
        delivery.refuse_overtaken(stored.applied_at, f"the registry of {target}")
        self.stored.remove(target)

    def every(self) -> list[dict[str, object]]:
        """Return a document for each registry."""
        return [_document(stored) for stored in self.stored.every()]

    def of_new_split(self, target: Target, *, now: datetime) -> tuple[Registry, Sequence[object]]:
        """Return the registry of a target, and its documents. Raises `NoRegistry` and `RejectedError`.

        Without an applied registry a Kubernetes workload has that in its cluster, which is read for each new split.
        """
        known = self.stored.find(target)
        if known is None or known.source != APPLIED:
            documents = self.declared.documents(target) if target.is_on_kubernetes else ()
            known = StoredRegistry(target, documents, now, f"cluster {target.cluster}") if documents else None
        if known is None:
            where = ", or create one in its namespace" if target.is_on_kubernetes else ""
            near = suggestion(str(target), (str(one.target) for one in self.stored.every()))
            raise NoRegistry(f"{target} has no registry: apply or discover one first{where}{near}")
        registry = self.reader.of_target(known.documents, target)
        if known.source != APPLIED:
            _check_size(known)
            self.stored.put(known)
        return registry, known.documents

    def completed(self, target: Target) -> Target:
        """Return a Kubernetes workload with its namespace and cluster. Raises `InvalidTarget`."""
        if not target.is_on_kubernetes or target.cluster:
            return target
        known = (stored.target for stored in self.stored.every())
        return completed_target(target, known, self.reader.clusters)

    def _known_place(self, target: Target) -> Target:
        clusters = self.reader.clusters
        if target.cluster is not None and target.cluster not in clusters:
            known = ", ".join(clusters) or "none"
            raise InvalidTarget(f"{target}: kubernetes_clusters has no {target.cluster!r}; it has {known}")
        return self.completed(target)


def _check_size(registry: StoredRegistry) -> None:
    size = len(json.dumps(registry.documents).encode())
    if size > MAXIMUM_DOCUMENT_BYTES:
        limit = f"at most {MAXIMUM_DOCUMENT_BYTES} are allowed"
        raise RegistryTooLarge(f"the registry of {registry.target} has {size} bytes; {limit}")


def _document(stored: StoredRegistry) -> dict[str, object]:
    return {
        "target": str(stored.target),
        "source": stored.source,
        "applied_at": stored.applied_at.isoformat(),
        "documents": list(stored.documents),
    }
