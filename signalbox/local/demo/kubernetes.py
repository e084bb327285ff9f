"""The demo of splitting on Kubernetes: two developers share the queue of a Deployment, which is then as before."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3

from signalbox.clients.deployment import Deployment, require_local
from signalbox.errors import UnavailableError
from signalbox.flows.consumer import VISIBILITY_SECONDS, Receipt, variable_of, wait_until
from signalbox.flows.splitting import CAPABILITY, SharedQueues
from signalbox.flows.trial import Trial
from signalbox.local import eks, kubernetes
from signalbox.local.cluster_api import ClusterApi
from signalbox.local.demo.pods import STAY, Pods
from signalbox.local.emulator import lifecycle
from signalbox.local.progress import step
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import QueueName
from signalbox.splitting.consumers.rbac import RoleRights, group, role_documents
from signalbox.splitting.model.target import Target

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
        attributes: Any = {"VisibilityTimeout": str(VISIBILITY_SECONDS)}
        url = session.client("sqs").create_queue(QueueName=QUEUE, Attributes=attributes)["QueueUrl"]
        pods = Pods(api, NAMESPACE, f"app={NAME}", session, [variable_of(QUEUE)])
        workload = cls(session, api, {QUEUE: url}, pods)
        rights = RoleRights((Target.parse(workload.target),), config_maps=(), reads_registries=False)
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


def show_kubernetes(trial: Trial, *, build: bool = False) -> None:
    """Share the queue of a Deployment on a cluster that runs meanwhile.

    Without `build`, a cluster that is not built yet is not started.
    """
    if not build and not kubernetes.is_built():
        with trial.journal.step(CAPABILITY, WHERE) as timing:
            timing.detail = HOW
        return
    if not kubernetes.is_built():
        with step("splitting on Kubernetes: build the cluster (5 to 13 minutes, once)"):
            kubernetes.program()
    with attached_cluster(trial.deployment) as api:
        with trial.journal.step(CAPABILITY, f"{WHERE}: a Deployment") as timing:
            workload = DeployedWorkload.deploy(trial.deployment.session(), api, stage=STAGE)
            timing.detail = f"{workload.target} reads {QUEUE}"
        with workload.pods.running():
            SharedQueues(trial, workload, "demo-kubernetes", workload.specification, where=f"{WHERE}: ").share()


@contextmanager
def attached_cluster(deployment: Deployment) -> Iterator[ClusterApi]:
    """Run a cluster that is attached to the stage; yield the access of its administrator."""
    stage_folder = StageFolder(require_local(deployment).folder)
    if (emulator := lifecycle.running(stage_folder)) is None:
        raise UnavailableError("splitting on Kubernetes is shown on a local stage only")
    secret = secrets.token_hex(16)
    reviews = eks.token_reviews(emulator, secret)
    with TemporaryDirectory() as folder, kubernetes.running(Path(folder, "cluster"), token_reviews=reviews) as cluster:
        eks.attach(stage_folder, cluster, secret)
        yield ClusterApi.of(cluster)


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
