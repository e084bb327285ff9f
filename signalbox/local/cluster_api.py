"""A client of a local Kubernetes cluster's API, for its administrator and the users that it makes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from urllib3 import PoolManager, Timeout

from signalbox.errors import UnavailableError
from signalbox.local.kubernetes import Cluster

JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
TIMEOUT = Timeout(connect=10, read=60)


class ClusterCallFailed(UnavailableError):
    """Raised when a local Kubernetes cluster answers a call with another status than 2xx."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        self.status, self.document = status, document
        super().__init__(f"{status}: {document.get('message', document)}")


@dataclass(frozen=True, slots=True)
class ClusterApi:
    """One user's access to the API of a cluster."""

    endpoint: str
    token: str
    pool: PoolManager

    @classmethod
    def of(cls, cluster: Cluster) -> "ClusterApi":
        """Return the administrator's access."""
        return cls(cluster.endpoint, cluster.token, PoolManager(maxsize=8, ssl_context=cluster.tls))

    def call(self, method: str, path: str, document: object = None, *, kind: str = JSON, **query: str) -> Any:  # noqa: ANN401 - as the API returns it
        """Return the document of an answer. Raises `ClusterCallFailed`, and urllib3's errors without an answer."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind, "Accept": JSON}
        body = None if document is None else json.dumps(document)
        url = f"{self.endpoint}{path}" + (f"?{urlencode(query)}" if query else "")
        answer = self.pool.request(method, url, body=body, headers=headers, timeout=TIMEOUT, retries=False)
        try:
            found = answer.json()
        except ValueError:
            found = {"message": answer.data.decode(errors="replace")}
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise ClusterCallFailed(answer.status, found)
        return found

    def get(self, path: str, **query: str) -> Any:  # noqa: ANN401 - as above
        """Read an object or a list."""
        return self.call("GET", path, **query)

    def find(self, path: str) -> Any | None:  # noqa: ANN401 - as above
        """Read an object; None if there is none."""
        try:
            return self.get(path)
        except ClusterCallFailed as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def create(self, document: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as above
        """Create an object as `kubectl create` does: its path is in its kind and metadata."""
        version, metadata = document["apiVersion"], document["metadata"]
        group = f"/apis/{version}" if "/" in version else f"/api/{version}"
        namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        return self.call("POST", f"{group}{namespace}/{document['kind'].lower()}s", document)

    def apply(self, path: str, document: object, *, manager: str, force: bool = False) -> Any:  # noqa: ANN401 - as above
        """Apply a manifest as `kubectl apply --server-side` does."""
        return self.call("PATCH", path, document, kind=APPLY, fieldManager=manager, force=str(force).lower())
