"""A Kubernetes cluster for tests, its namespaces, and clients of its API."""

import os
import secrets
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from signalbox.local import cluster_api, kubernetes
from signalbox.local.demo import pods
from tests.patience import wait_for

Api, ApiError, MERGE = cluster_api.ClusterApi, cluster_api.ClusterCallFailed, cluster_api.MERGE
APPS, CORE, RBAC = "/apis/apps/v1", "/api/v1", "/apis/rbac.authorization.k8s.io/v1"
GROUPS = {
    **dict.fromkeys(("deployments", "statefulsets", "replicasets", "controllerrevisions"), APPS),
    **dict.fromkeys(("pods", "configmaps", "secrets", "serviceaccounts", "events"), CORE),
    **dict.fromkeys(("roles", "rolebindings"), RBAC),
    "rollouts": "/apis/argoproj.io/v1alpha1",
    "mirrordworkloadqueueregistries": "/apis/queues.mirrord.metalbear.co/v1alpha",
}
# Annotations of pods that the stand-in for the kubelet knows: see server/kubelet.go.
READY, STAY = "kubelet.signalbox.example/ready", pods.STAY
STRATEGIC, JSON_PATCH = "application/strategic-merge-patch+json", "application/json-patch+json"
DELETE_AT_ONCE = {"propagationPolicy": "Background"}


class Server:
    """A cluster that can be away for a while, with an administrator."""

    def __init__(self, folder: Path, *, token_reviews: str | None = None) -> None:
        self.folder, self._token_reviews, self._port = folder, token_reviews, 0
        self._run = ExitStack()
        self.start()

    def start(self) -> None:
        """Start the cluster, after a stop on the same port and with the same objects."""
        running = kubernetes.running(self.folder, port=self._port, token_reviews=self._token_reviews)
        self.cluster = self._run.enter_context(running)
        self._port = int(self.cluster.endpoint.rpartition(":")[2])
        self.api = Api.of(self.cluster)

    def stop(self) -> None:
        """Kill the cluster: connections are refused."""
        self._run.close()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Stop the cluster while the block runs, and start it again."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the cluster answer nothing while the block runs: connections are accepted, calls time out."""
        os.kill(self.cluster.process, signal.SIGSTOP)
        try:
            wait_for(lambda: _is_stopped(self.cluster.process), "the cluster is stopped")
            yield
        finally:
            os.kill(self.cluster.process, signal.SIGCONT)

    @property
    def log(self) -> Path:
        """The log of the API server and the controllers."""
        return kubernetes.log_of(self.folder)

    def new_namespace(self, name: str | None = None) -> "Namespace":
        """Create a namespace."""
        name = name or f"test-{secrets.token_hex(4)}"
        self.api.call("POST", f"{CORE}/namespaces", {"metadata": {"name": name}})
        return Namespace(self.api, name)

    def define(self, definition: Mapping[str, Any]) -> None:
        """Create a CustomResourceDefinition unless it exists, and wait until its objects can be created."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        name = definition["metadata"]["name"]
        if self.api.find(f"{path}/{name}") is None:
            self.api.call("POST", path, definition)
        wait_for(lambda: _is_established(self.api.get(f"{path}/{name}")), f"the API has {name}")


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace, and one user's access to it."""

    api: Api
    name: str

    def path(self, resource: str, name: str = "") -> str:
        """Return the path of the objects of a resource, such as `deployments`, or of one of them."""
        path = f"{GROUPS[resource]}/namespaces/{self.name}/{resource}"
        return f"{path}/{name}" if name else path

    def get(self, resource: str, name: str) -> Any:
        """Read an object."""
        return self.api.get(self.path(resource, name))

    def find(self, resource: str, name: str) -> Any | None:
        """Read an object; None if there is none."""
        return self.api.find(self.path(resource, name))

    def objects(self, resource: str, **query: str) -> list[Any]:
        """List the objects of a resource; `labelSelector="app=x"` and others limit them."""
        items: list[Any] = self.api.get(self.path(resource), **query)["items"]
        return items

    def create(self, resource: str, document: Mapping[str, Any]) -> Any:
        """Create an object."""
        return self.api.call("POST", self.path(resource), document)

    def apply(self, resource: str, document: Mapping[str, Any], *, manager: str, force: bool = False) -> Any:
        """Apply a manifest as `kubectl apply --server-side --field-manager` does."""
        path = self.path(resource, document["metadata"]["name"])
        return self.api.apply(path, document, manager=manager, force=force)

    def patch(self, resource: str, name: str, document: object, *, kind: str = MERGE, **query: str) -> Any:
        """Patch an object."""
        return self.api.call("PATCH", self.path(resource, name), document, kind=kind, **query)

    def delete(self, resource: str, name: str) -> None:
        """Delete an object, and in the background what it owns."""
        self.api.call("DELETE", self.path(resource, name), DELETE_AT_ONCE)

    def deploy(self, manifest: Mapping[str, Any], *, resource: str = "deployments") -> Any:
        """Create a workload and return it when its pods are ready."""
        self.create(resource, manifest)
        return self.rolled_out(resource, manifest["metadata"]["name"])

    def rolled_out(self, resource: str, name: str) -> Any:
        """Wait until all pods of a workload are those of its template and ready; return the workload."""

        def look() -> Any | None:
            found = self.get(resource, name)
            return found if is_rolled_out(found) else None

        return wait_for(look, f"{resource}/{name} is rolled out")

    def pods(self, selector: str) -> list[Any]:
        """List the pods that run, by a label selector such as `app=x`; those that terminate run too."""
        found = self.objects("pods", labelSelector=selector)
        return [pod for pod in found if pod["status"].get("phase") == "Running"]

    def service_account(self, name: str, *rules: Mapping[str, Any]) -> "Namespace":
        """Create a service account with these rights in this namespace; return its own access."""
        self.create("serviceaccounts", {"metadata": {"name": name}})
        if rules:
            self.create("roles", {"metadata": {"name": name}, "rules": list(rules)})
            self.bind("Role", name, {"kind": "ServiceAccount", "name": name, "namespace": self.name})
        return replace(self, api=replace(self.api, token=self.account_token(name)))

    def account_token(self, name: str) -> str:
        """Return a token of a service account."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self.api.call("POST", self.path("serviceaccounts", f"{name}/token"), request)
        return str(answer["status"]["token"])

    def bind(self, kind: str, role: str, subject: Mapping[str, Any]) -> None:
        """Give a role of this namespace, or a ClusterRole in it, to a user, group or service account."""
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        name = f"{role}-{secrets.token_hex(3)}"
        self.create("rolebindings", {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})

    def remove(self) -> None:
        """Delete the namespace; it takes some 5 s until it is gone."""
        self.api.call("DELETE", f"{CORE}/namespaces/{self.name}")


def deployment(name: str, *, env: Mapping[str, str], replicas: int = 1, **template: Any) -> dict[str, Any]:
    """Return the manifest of a Deployment with one container `main`; `template` has fields of the pod's metadata."""
    pod = {"containers": [{"name": "main", "image": "consumer:1", "env": _env(env)}]}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, **template}, "spec": pod},
        },
    }


def stateful_set(name: str, *, env: Mapping[str, str], replicas: int = 1, **template: Any) -> dict[str, Any]:
    """Return the manifest of a StatefulSet with one container `main`."""
    manifest = deployment(name, env=env, replicas=replicas, **template)
    manifest["spec"]["serviceName"] = name
    return {**manifest, "kind": "StatefulSet"}


def env_of(pod: Mapping[str, Any], container: str = "main") -> dict[str, str | None]:
    """Return the literal variables of a pod's container; those with another source are None."""
    (found,) = (one for one in pod["spec"]["containers"] if one["name"] == container)
    return {variable["name"]: variable.get("value") for variable in found.get("env", [])}


def is_rolled_out(workload: Mapping[str, Any]) -> bool:
    """Return whether all pods of a workload are those of its template and ready, and no other is left."""
    status, wanted = workload.get("status", {}), workload["spec"]["replicas"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")]
    return status.get("observedGeneration") == workload["metadata"]["generation"] and counts == [wanted] * 4


def managers(workload: Mapping[str, Any]) -> set[str]:
    """Return the field managers of an object, without those that set its status."""
    entries = workload["metadata"].get("managedFields", [])
    return {entry["manager"] for entry in entries if entry.get("subresource") != "status"}


def _is_stopped(process: int) -> bool:
    """Return whether all threads of a process are stopped: on a busy machine, some run on for a while after SIGSTOP."""
    threads = (file.read_text() for file in Path(f"/proc/{process}/task").glob("*/stat"))
    return all(thread.rpartition(")")[2].split()[0] == "T" for thread in threads)


def _env(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []  # null at first
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
