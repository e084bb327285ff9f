"""The API of one Kubernetes cluster, as far as splitting uses it, and its errors."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

from signalbox.errors import EffectFailed, EffectRefused

# The manager of the fields that Signalbox sets by server-side apply.
FIELD_MANAGER = "signalbox"


class ClusterUnavailable(EffectFailed):
    """Raised when a cluster does not answer, answers 429 or 5xx, or has a newer version of an object."""


class ObjectChanged(ClusterUnavailable):
    """Raised when an object has a newer version than the one that a patch is for."""


class ClusterRefused(EffectRefused):
    """Raised when a cluster is unknown or not trusted, or refuses a call; the text has the call and the remedy."""


class ClusterGone(ClusterRefused):
    """Raised when EKS has no cluster of this name (any more)."""


class FieldConflict(EffectRefused):
    """Raised when fields of an object belong to other managers; `managers` has their names, `fields` their paths."""

    def __init__(self, text: str, *, managers: tuple[str, ...], fields: tuple[str, ...]) -> None:
        super().__init__(text)
        self.managers = managers
        self.fields = fields


class PatchKind(StrEnum):
    """The kinds of patches, with their media types."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class KubernetesApi(Protocol):
    """Calls of the API server of one cluster; paths start with `/api/` or `/apis/`.

    Every call raises `ClusterUnavailable` and `ClusterRefused`.
    """

    def get(self, path: str, **query: str) -> Mapping[str, Any] | None:
        """Return an object or a list; None if there is none (404)."""

    def apply(self, path: str, document: Mapping[str, Any], *, force: bool = False) -> Mapping[str, Any]:
        """Apply fields on the server, as `FIELD_MANAGER`, and return the object. Raises `FieldConflict`."""

    def patch(self, path: str, document: Mapping[str, Any] | list[Any], *, kind: PatchKind) -> Mapping[str, Any]:
        """Patch an object and return it. With `metadata.resourceVersion`, only that version is patched."""
