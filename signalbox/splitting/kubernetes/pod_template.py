"""Pod templates of Kubernetes workloads: finding and replacing queue names in the variables of containers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolution, Resolver, UnresolvedQueue, unread
from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind

Document = Mapping[str, Any]  # an object of the Kubernetes API
Environments = dict[str, dict[str, str]]  # values of variables by container
ConfigMaps = Callable[[str], "Mapping[str, str] | None"]  # the data of a config map of the namespace, by its name

REMEDY = "give the queue's name as a plain value or from a config map"
OTHER_SOURCES = {
    "secretKeyRef": "a secret",
    "fieldRef": "the downward API",
    "resourceFieldRef": "the downward API",
    "fileKeyRef": "a file",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The queues that containers read; `is_complete` is false if a registered variable is absent or unreadable."""

    names: frozenset[QueueName]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """The pod template of a workload, or a pod; `config_maps` reads the maps that its variables come from."""

    pod: Document
    resolver: Resolver
    config_maps: ConfigMaps

    @property
    def containers(self) -> Sequence[Document]:
        """Return the containers."""
        return containers_of(self.pod)

    @property
    def environments(self) -> Environments:
        """Return all variables of each container; those that are not read are left out."""
        every = NameSource(SourceKind.VARIABLES_LIKE, "")
        found: Environments = {}
        for container in self.containers:
            found[container["name"]] = dict(self._from_maps(every, container))
            for entry in container.get("env", ()):
                with suppress(UnresolvedQueue):
                    found[container["name"]][entry["name"]] = self._value(container, entry) or ""
        return found

    def queue_names(self, queue: RegisteredQueue) -> Iterator[QueueName]:
        """Yield the queues of one queue id, which may repeat. Raises `UnresolvedQueue`."""
        for source in queue.sources:
            for _, resolution in self._resolutions(source, {}):
                yield from resolution.queue_names

    def reading(self, registry: Registry) -> "Reading":
        """Return the queues that the containers read."""
        found: set[QueueName] = set()
        is_complete = True
        for source in (source for queue in registry.queues for source in queue.sources):
            try:
                resolutions = list(self._resolutions(source, {}))
            except UnresolvedQueue:
                is_complete = False
                continue
            found |= {name for _, resolution in resolutions for name in resolution.queue_names}
        return Reading(frozenset(found), is_complete)

    def renamed(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Environments:
        """Return the variables with queue names, with the names replaced. Raises `UnresolvedQueue`."""
        changed: Environments = {container["name"]: {} for container in self.containers}
        for source in (source for queue in registry.queues for source in queue.sources):
            self._rename(source, changed, names)
        return changed

    def renamed_where_found(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Environments:
        """Return `renamed` without the variables that the workload does not have any more."""
        changed: Environments = {container["name"]: {} for container in self.containers}
        for source in (source for queue in registry.queues for source in queue.sources):
            with suppress(UnresolvedQueue):
                self._rename(replace(source, fallback=None), changed, names)
        return changed

    def _rename(self, source: NameSource, changed: Environments, names: Mapping[QueueName, QueueName]) -> None:
        for container, resolution in list(self._resolutions(source, changed)):
            # The next source may read the same variable and must keep the replaced names.
            is_named = not names.keys().isdisjoint(resolution.queue_names)
            value = self.resolver.replaced(source, resolution, names) if is_named else resolution.value
            changed[container][resolution.variable] = value

    def _resolutions(self, source: NameSource, changed: Environments) -> Iterator[tuple[str, Resolution]]:
        chosen = self._chosen(source)
        variables = {
            container["name"]: self._variables(source, container) | _matching(source, changed, container, self.resolver)
            for container in chosen
        }
        having = [name for name, found in variables.items() if found]
        if not having:
            _refuse_secrets(source, chosen)
        for name in having or variables:
            for resolution in self.resolver.resolve(source, variables[name]):
                yield name, resolution

    def _chosen(self, source: NameSource) -> list[Document]:
        known = [container["name"] for container in self.containers]
        if unknown := sorted(set(source.containers) - set(known)):
            raise UnresolvedQueue(f"there is no container {', '.join(unknown)}; there is {', '.join(known)}")
        return [one for one in self.containers if not source.containers or one["name"] in source.containers]

    def _variables(self, source: NameSource, container: Document) -> dict[str, str]:
        """Return the variables that a source means, with their values; `env` takes precedence over `envFrom`."""
        matching = [entry for entry in container.get("env", ()) if _matches(source, entry["name"], self.resolver)]
        named = {entry["name"]: entry for entry in matching}
        if len(named) < len(matching):
            raise UnresolvedQueue(f"container {container['name']!r} has variable {source.key!r} twice; remove one")
        plain = {name: value for name, entry in named.items() if (value := self._value(container, entry)) is not None}
        if source.kind is SourceKind.VARIABLE and named:
            return plain
        return {name: value for name, value in self._from_maps(source, container) if name not in named} | plain

    def _value(self, container: Document, entry: Document) -> str | None:
        """Return the value of a variable, or None if an optional config map does not have it."""
        origin = entry.get("valueFrom")
        if not origin:
            return str(entry.get("value", ""))
        subject = f"variable {entry['name']!r} of container {container['name']!r}"
        if "configMapKeyRef" not in origin:
            where = next((text for field, text in OTHER_SOURCES.items() if field in origin), "another source")
            raise UnresolvedQueue(f"{subject} comes from {where}, which is not read; {REMEDY}")
        reference = origin["configMapKeyRef"]
        value = (self.config_maps(reference["name"]) or {}).get(reference["key"])
        if value is None and not reference.get("optional"):
            raise UnresolvedQueue(f"{subject}: there is no config map {reference['name']!r} with {reference['key']!r}")
        return value

    def _from_maps(self, source: NameSource, container: Document) -> Iterator[tuple[str, str]]:
        """Yield the variables of `envFrom`; of equal names the last one counts."""
        for origin in container.get("envFrom", ()):
            reference = origin.get("configMapRef")
            if reference is None:
                continue
            data = self.config_maps(reference["name"])
            if data is None and not reference.get("optional"):
                raise UnresolvedQueue(f"container {container['name']!r}: there is no config map {reference['name']!r}")
            for key, value in (data or {}).items():
                if _matches(source, name := origin.get("prefix", "") + key, self.resolver):
                    yield name, value


def containers_of(pod: Document) -> Sequence[Document]:
    """Return the containers of a pod or a pod template."""
    found: Sequence[Document] = pod.get("spec", {}).get("containers", ())
    return found


def env_entry(pod: Document, container: str, variable: str) -> Document | None:
    """Return the entry of a variable in `env`, or None."""
    for one in containers_of(pod):
        for entry in one.get("env", ()) if one["name"] == container else ():
            if entry["name"] == variable:
                found: Document = entry
                return found
    return None


def _matches(source: NameSource, name: str, resolver: Resolver) -> bool:
    if source.kind is SourceKind.VARIABLES_LIKE:
        return resolver.compiler.pattern(source.key, case_sensitive=True).matches(name)
    return name == source.key


def _matching(source: NameSource, changed: Environments, container: Document, resolver: Resolver) -> dict[str, str]:
    found = changed.get(container["name"], {})
    return {name: value for name, value in found.items() if _matches(source, name, resolver)}


def _refuse_secrets(source: NameSource, containers: Sequence[Document]) -> None:
    for container in containers:
        secrets = [one["secretRef"]["name"] for one in container.get("envFrom", ()) if "secretRef" in one]
        if secrets:
            raise unread(source)(
                f"container {container['name']!r} has no variable {source.key!r} but takes some from the secret "
                f"{', '.join(map(repr, secrets))}, which is not read; {REMEDY}"
            )
