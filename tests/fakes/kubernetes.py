"""An API of a cluster in memory, for answers that a real server does not give on request.

`tests/adapters/splitting/test_kubernetes_targets.py` runs the same adapter against a real API server.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from signalbox.aws.splitting.kubernetes.api import ClusterRefused, ObjectChanged, PatchKind


@dataclass
class MemoryKubernetes:
    """Objects and lists by path. Every call raises `refusal`; the first `conflicts` writes find a newer version.

    Writes are kept in `applied` and `patches`; `react` changes the object as the server would.
    """

    objects: dict[str, Any] = field(default_factory=dict)
    refusal: Exception | None = None
    refused_paths: set[str] = field(default_factory=set)
    conflicts: int = 0
    applied: list[Mapping[str, Any]] = field(default_factory=list)
    patches: list[list[Any]] = field(default_factory=list)
    react: Callable[[dict[str, Any]], None] = lambda _: None
    queries: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def get(self, path: str, **query: str) -> Mapping[str, Any] | None:
        if self.refusal:
            raise self.refusal
        if path in self.refused_paths:
            raise ClusterRefused(f"403: {path}")
        self.queries.append((path, query))
        return copy.deepcopy(self.objects.get(path))

    def apply(self, path: str, document: Mapping[str, Any], *, force: bool = False) -> Mapping[str, Any]:
        assert force
        self._write(path)
        self.applied.append(document)
        self.react(self.objects[path])
        return self.objects[path]

    def patch(self, path: str, document: Any, *, kind: PatchKind) -> Mapping[str, Any]:
        assert kind is PatchKind.JSON
        self._write(path)
        self.patches.append(document)
        self.react(self.objects[path])
        return self.objects[path]

    def _write(self, path: str) -> None:
        if self.refusal:
            raise self.refusal
        if self.conflicts:
            self.conflicts -= 1
            raise ObjectChanged("409: the object has changed since it was read")
        assert path in self.objects
