"""A deployed consumer in the pods of a simulated cluster, and its owner, who applies, scales and deletes it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import botocore
from botocore.exceptions import BotoCoreError

from signalbox.aws.splitting.kubernetes.api import PatchKind
from signalbox.aws.splitting.kubernetes.client import APPLY
from tests.kubernetes.cluster import deployment
from tests.simulation.cluster import SERVICE, SimulatedCluster
from tests.simulation.services import Refusal
from tests.simulation.sqs import URL
from tests.simulation.world import World

WEB, NAMESPACE, CLUSTER, IMAGES, VARIABLE = "web", "shop", "lab", "images", "QUEUE"
TARGET = f"deployment/{WEB}@{NAMESPACE}.{CLUSTER}"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{WEB}"

REGISTRY = {
    "apiVersion": "queues.mirrord.metalbear.co/v1",
    "kind": "MirrordSplitConfig",
    "metadata": {"name": WEB, "namespace": NAMESPACE, "annotations": {"signalbox/cluster": CLUSTER}},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": WEB},
        "queues": [{"id": IMAGES, "kind": "sqs", "appConfig": {"queue": [{"env": VARIABLE}]}}],
    },
}


def manifest(level: int, replicas: int) -> dict[str, Any]:
    """Return the owner's manifest of the consumer in pods."""
    made = deployment(WEB, env={"LEVEL": str(level), VARIABLE: URL + IMAGES}, replicas=replicas)
    made["metadata"]["namespace"] = NAMESPACE
    return made


def _some_ca() -> str:
    text = (Path(botocore.__file__).parent / "cacert.pem").read_text(encoding="utf-8")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    return begin + text.partition(begin)[2].partition(end)[0] + end + "\n"


# The setting of the cluster, with any certificate: nothing is encrypted here.
CLUSTERS = {CLUSTER: {"endpoint": "https://lab.example", "ca": _some_ca(), "token_secret": "lab-token"}}


@dataclass
class DeployedPods:
    """The consumer and its owner until a time; `handle` receives and handles messages of a queue."""

    world: World
    handle: Callable[[str, str], bool]
    until: float
    is_owned: bool = False

    def __post_init__(self) -> None:
        self.cluster = SimulatedCluster(self.world.kernel, self._start)
        self.cluster.objects[f"/api/v1/namespaces/{NAMESPACE}"] = {"metadata": {"name": NAMESPACE}}
        self.world.calls.services[SERVICE] = self.cluster
        self.world.calls.services["secretsmanager"] = lambda *_: {"SecretString": "a-token"}

    def _start(self, path: str) -> None:
        self.world.actor(path.rpartition("/")[2], partial(self._pod, path))

    def _pod(self, path: str) -> None:
        (container,) = self.cluster.objects[path]["spec"]["containers"]
        url = next(one["value"] for one in container["env"] if one["name"] == VARIABLE)
        while path in self.cluster.objects:
            if not self.handle("consumer in pods", url):
                self.world.kernel.sleep(2)

    def own(self) -> None:
        """Deploy the consumer; then apply, scale, and rarely delete and create it, as a pipeline does."""
        self.is_owned = True
        kernel, level, replicas = self.world.kernel, 0, 1
        while kernel.now < self.until or DEPLOYMENT not in self.cluster.objects:
            choice = kernel.random() if DEPLOYMENT in self.cluster.objects else 0.0
            if choice < 0.3:
                level += 1
                self._ask("PATCH", manifest(level, replicas), kind=APPLY, fieldManager="flux", force="true")
            elif choice < 0.9:
                replicas = 1 + kernel.number(3)
                self._ask("PATCH", {"spec": {"replicas": replicas}}, kind=PatchKind.MERGE, fieldManager="hpa")
            elif kernel.is_faulty("the consumer is deleted", 10 * kernel.rates.refused):
                self._ask("DELETE")
            kernel.sleep(kernel.between(60, 600))

    def _ask(self, method: str, document: object = None, *, kind: str = "", **query: str) -> None:
        """Make a call of the workload until it has an answer."""
        request = {"Path": DEPLOYMENT, "Query": query, "Kind": kind, "Document": document}
        while True:
            try:
                self.world.call(SERVICE, method, **request)
            except (Refusal, BotoCoreError):
                self.world.kernel.sleep(5)
                continue
            return

    def problems(self) -> Iterator[str]:
        """Yield the differences from the owner's manifest."""
        if not self.is_owned:  # small scopes have no pods
            return
        workload = self.cluster.objects[DEPLOYMENT]
        template = workload["spec"]["template"]
        pods = [pod for pod in self.cluster.objects.values() if pod["metadata"].get("of") == DEPLOYMENT]
        for pod in (template, *pods):
            (container,) = pod["spec"]["containers"]
            values = {one["name"]: one.get("value") for one in container["env"]}
            if values.get(VARIABLE) != URL + IMAGES or set(values) != {"LEVEL", VARIABLE}:
                yield f"the consumer in pods has the variables {values}"
        annotations = {**workload["metadata"].get("annotations", {}), **template["metadata"].get("annotations", {})}
        managers = {one["manager"] for one in workload["metadata"]["managedFields"]}
        if annotations or not managers <= {"flux", "hpa"}:
            yield f"the consumer in pods has annotations {annotations} and managers {managers}"
