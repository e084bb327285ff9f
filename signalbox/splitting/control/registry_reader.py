"""Reader of registries: their documents, with what the stage adds to them."""

from collections.abc import Sequence
from dataclasses import dataclass

from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.consumers.registry_file import documents_of, parse_registries
from signalbox.splitting.model.filters import Compiler
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import StoredSplit
from signalbox.splitting.queues.names import DEFAULT_PREFIX, QueueNames


@dataclass(frozen=True, slots=True)
class RegistryReader:
    """Reads registries; `prefix` begins the names of temporary queues.

    `clusters` has the names of the Kubernetes clusters of the stage, the default one first.
    """

    compiler: Compiler
    prefix: str = DEFAULT_PREFIX
    clusters: Sequence[str] = ()

    def parsed(self, documents: Sequence[object]) -> tuple[Registry, ...]:
        """Return the registries in the documents of a file. Raises `RejectedError`."""
        return parse_registries(documents, self.compiler, prefix=self.prefix, cluster=self._cluster)

    def documents_of(self, documents: Sequence[object], target: Target) -> Sequence[object]:
        """Return the documents of a target among those of a file. Raises `RejectedError`."""
        return documents_of(documents, target, self.compiler, cluster=self._cluster)

    def of_target(self, documents: Sequence[object], target: Target) -> Registry:
        """Return a target's registry from the documents of a file."""
        found = parse_registries(documents, self.compiler, prefix=self.prefix, cluster=target.cluster)
        return next(registry for registry in found if registry.target == target)

    def of_split(self, stored: StoredSplit) -> Registry:
        """Return the registry that a split began with, of its queues alone."""
        found = self.of_target(stored.documents, stored.split.target)
        return found.of(queue.queue_id for queue in stored.split.queues)

    def names(self, registry: Registry) -> QueueNames:
        """Return the name generator for a target's temporary queues."""
        return QueueNames(self.prefix, registry.name_template)

    @property
    def _cluster(self) -> str | None:
        return next(iter(self.clusters), None)
