"""The demo of splitting on Kubernetes: two developers share the queue of a Deployment, which is then as before."""

import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import boto3

from signalbox.errors import UnavailableError
from signalbox.local import eks, kubernetes
from signalbox.local.cluster_api import ClusterApi
from signalbox.local.demo.consumer import VISIBILITY_SECONDS, Receipt, make_queue, variable_of, wait_until
from signalbox.local.demo.pods import STAY, Pods
from signalbox.local.demo.splitting import DEVELOPERS, MESSAGES, TIMEOUT, SplitTrial
from signalbox.local.emulator import lifecycle
from signalbox.local.progress import step
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import QueueName
from signalbox.splitting.consumers.rbac import Rights, group, role_documents
from signalbox.splitting.model.target import Target

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment

Row = tuple[str, str]
WHERE = "on Kubernetes"
STAGE = "signalbox"
NAME, NAMESPACE, QUEUE = "demo-meme-app", "demo", QueueName("demo-memes-on-kubernetes")
HOW = 'the cluster is not built yet: make up ARGS="--kubernetes" builds it once, in 5 to 13 minutes'
REPLICAS = 2
NAMESPACE_MANIFEST = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


@dataclass(frozen=True, slots=True)
class DeployedWorkload:
    """A Deployment whose pods read a queue."""

    session: boto3.Session
    api: ClusterApi
    queues: Mapping[QueueName, str]
    pods: Pods

    @classmethod
    def deploy(cls, session: boto3.Session, api: ClusterApi, *, stage: str) -> "DeployedWorkload":
        """Create the queue, the Deployment, and the role with which the stage splits it."""
        url = make_queue(session, QUEUE, visibility_seconds=VISIBILITY_SECONDS)
        pods = Pods(api, NAMESPACE, f"app={NAME}", session, [variable_of(QUEUE)])
        workload = cls(session, api, {QUEUE: url}, pods)
        rights = Rights((Target.parse(workload.target),), config_maps=(), reads_registries=False)
        roles = role_documents(rights, name=NAME, subject=group(stage))
        for document in (NAMESPACE_MANIFEST, *roles, _manifest()):
            api.create(document)
        wait_until(workload.is_rolled_out, f"{workload.target} runs")
        return workload

    @property
    def target(self) -> str:
        """The workload's name in the commands of splitting."""
        return f"deployment/{NAME}@{NAMESPACE}"

    @property
    def path(self) -> str:
        """The path of the Deployment in the API."""
        return f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"

    def registry(self) -> dict[str, object]:
        """Return the document that registers its queue."""
        return {
            "apiVersion": "queues.mirrord.metalbear.co/v1alpha",
            "kind": "MirrordWorkloadQueueRegistry",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {
                "queues": {QUEUE: {"queueType": "SQS", "nameSource": {"envVar": variable_of(QUEUE)}}},
                "consumer": {"name": NAME, "workloadType": "Deployment"},
            },
        }

    def received(self) -> list[Receipt]:
        """Return all receipts, ordered by time."""
        return sorted(self.pods.received, key=lambda one: one.moment_ns)

    def specification(self) -> Any:  # noqa: ANN401 - as the API returns it
        """Return the specification of the Deployment."""
        return self.api.get(self.path)["spec"]

    def is_rolled_out(self) -> bool:
        """Return whether every pod is ready."""
        ready: int = self.api.get(self.path)["status"].get("readyReplicas", 0)
        return ready == REPLICAS


def kubernetes_rows(deployment: "Deployment", *, build: bool = False) -> Iterator[Row]:
    """Share the queue of a Deployment on a cluster that runs meanwhile; yield the results.

    Without `build`, a cluster that is not built yet is not started. Raises `UnavailableError` if a message reaches a
    wrong consumer, or the Deployment is not as before.
    """
    if not build and not kubernetes.is_built():
        yield WHERE, HOW
        return
    if not kubernetes.is_built():
        with step("splitting on Kubernetes: build the cluster (5 to 13 minutes, once)"):
            kubernetes.program()
    with attached_cluster(deployment) as api:
        with step("splitting on Kubernetes: a Deployment"):
            workload = DeployedWorkload.deploy(deployment.session(), api, stage=STAGE)
        with workload.pods.running():
            yield from _shared(deployment, workload)


@contextmanager
def attached_cluster(deployment: "Deployment") -> Iterator[ClusterApi]:
    """Run a cluster that is attached to the stage; yield the access of its administrator."""
    if deployment.folder is None or (emulator := lifecycle.running(StageFolder(deployment.folder))) is None:
        raise UnavailableError("splitting on Kubernetes is shown on a local stage only")
    secret = secrets.token_hex(16)
    reviews = eks.token_reviews(emulator, secret)
    with TemporaryDirectory() as folder, kubernetes.running(Path(folder, "cluster"), token_reviews=reviews) as cluster:
        eks.attach(StageFolder(deployment.folder), cluster, secret)
        yield ClusterApi.of(cluster)


def _shared(deployment: "Deployment", workload: DeployedWorkload) -> Iterator[Row]:
    before = workload.specification()
    trial = SplitTrial(deployment, workload, DEVELOPERS, "demo-kubernetes")
    clients = trial.clients()
    with step("splitting on Kubernetes: two sessions start"), ThreadPoolExecutor() as threads:
        ready = list(threads.map(lambda client: client.start(timeout=TIMEOUT), clients))
    yield f"{WHERE}: sessions", ", ".join(f"{one.session} reads {one.queues[0].temporary}" for one in ready)
    with step(f"splitting on Kubernetes: {MESSAGES} messages"):
        got = trial.share(ready, messages=MESSAGES)
    yield f"{WHERE}: deliveries", ", ".join(f"{name}: {count}" for name, count in sorted(got.items()))
    with step("splitting on Kubernetes: the sessions end, and the Deployment is restored"):
        trial.end(clients)
    if workload.specification() != before:
        raise UnavailableError(f"{workload.target} is not as before: {workload.specification()}")
    yield f"{WHERE}: afterwards", f"{workload.target} is as before"


def _manifest() -> dict[str, Any]:
    labels = {"app": NAME}
    container = {"name": "main", "image": "consumer", "env": [{"name": variable_of(QUEUE), "value": QUEUE}]}
    template = {"metadata": {"labels": labels, "annotations": {STAY: "true"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template},
    }
