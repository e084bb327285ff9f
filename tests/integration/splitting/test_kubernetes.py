"""Several users share the queues of a Kubernetes Deployment: no message is lost, and the workload is as before."""

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.flows.consumer import Receipt, variable_of
from signalbox.local import eks
from signalbox.local.emulator import lifecycle
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import FIFO_SUFFIX, QueueName
from signalbox.splitting.consumers.rbac import RoleRights, group, role_documents
from signalbox.splitting.model.target import Target
from tests.integration.splitting.pods import KillablePods
from tests.integration.splitting.users import END_SECONDS, Stage, Visits, prove_that_nothing_is_lost
from tests.kubernetes.cluster import STAY, STRATEGIC, Namespace, Server
from tests.kubernetes.cluster import deployment as deployment_manifest
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.kubernetes]

WEB = "demo-web"
OWNER = "gitops"
VISIBILITY_SECONDS = "6"


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment that reads queues, and its pods; a copy that is never split shows what the owner has made of it."""

    namespace: Namespace
    untouched: Namespace
    queues: Mapping[QueueName, str]
    pods: KillablePods

    @classmethod
    def deploy(cls, server: Server, stage: Deployment, queues: Sequence[QueueName]) -> "Workload":
        """Create the queues and the Deployment, as a GitOps controller does; the last name is in a config map."""
        urls = {queue: _queue(stage, queue) for queue in queues}
        namespace, untouched = server.new_namespace(), server.new_namespace()
        variables = [variable_of(queue) for queue in queues]
        pods = KillablePods(namespace.api, namespace.name, f"app={WEB}", stage.session(), variables)
        workload = cls(namespace, untouched, urls, pods)
        workload.permit()
        for one in (namespace, untouched):
            one.create("configmaps", {"metadata": {"name": "queues"}, "data": {"last": queues[-1]}})
        workload.owner_applies(workload.manifest())
        return workload

    def permit(self) -> None:
        """Give the stage the rights that `signalbox split kubernetes rbac` prints."""
        rights = RoleRights((Target.parse(self.target),), config_maps=("queues",), reads_registries=True)
        for document in role_documents(rights, name="signalbox", subject=group("signalbox")):
            self.namespace.api.create(document)

    def manifest(self, image: str = "consumer:1") -> dict[str, Any]:
        """Return the owner's manifest."""
        names = list(self.queues)
        manifest = deployment_manifest(
            WEB, env={variable_of(name): name for name in names[:-1]}, replicas=2, annotations={STAY: "true"}
        )
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        container["image"] = image
        source = {"configMapKeyRef": {"name": "queues", "key": "last"}}
        container["env"].append({"name": variable_of(names[-1]), "valueFrom": source})
        return manifest

    def owner_applies(self, manifest: Mapping[str, Any]) -> None:
        """Apply a manifest, also to the copy."""
        for one in (self.namespace, self.untouched):
            one.apply("deployments", manifest, manager=OWNER)

    def owner_sets_image(self, image: str) -> None:
        """Change one field, as `kubectl set image` does."""
        template = {"spec": {"containers": [{"name": "main", "image": image}]}}
        for one in (self.namespace, self.untouched):
            patch = {"spec": {"template": template}}
            one.patch("deployments", WEB, patch, kind=STRATEGIC, fieldManager="kubectl-set")

    @property
    def target(self) -> str:
        return f"deployment/{WEB}@{self.namespace.name}"

    def received(self) -> list[Receipt]:
        return sorted(self.pods.received, key=lambda receipt: receipt.moment_ns)

    def registry(self) -> dict[str, object]:
        """Return the resource that registers its queues."""
        queues = {
            name.removesuffix(FIFO_SUFFIX): {"queueType": "SQS", "nameSource": {"envVar": variable_of(name)}}
            for name in self.queues
        }
        return {
            "apiVersion": "queues.mirrord.metalbear.co/v1alpha",
            "kind": "MirrordWorkloadQueueRegistry",
            "metadata": {"name": WEB, "namespace": self.namespace.name},
            "spec": {"queues": queues, "consumer": {"name": WEB, "workloadType": "Deployment"}},
        }

    def is_split(self) -> bool:
        """Return whether the template names temporary queues."""
        return spec_of(self.namespace) != spec_of(self.untouched)


def spec_of(namespace: Namespace) -> str:
    """Return the text of a workload's specification."""
    return json.dumps(namespace.get("deployments", WEB)["spec"])


def managers_of(namespace: Namespace) -> list[Any]:
    """Return who manages which fields of a workload, without the times and the status."""
    entries = namespace.get("deployments", WEB)["metadata"]["managedFields"]
    known = [{key: entry[key] for key in entry if key != "time"} for entry in entries if "subresource" not in entry]
    return sorted(known, key=json.dumps)


def _queue(stage: Deployment, name: QueueName) -> str:
    attributes = {"VisibilityTimeout": VISIBILITY_SECONDS} | ({"FifoQueue": "true"} if FIFO_SUFFIX in name else {})
    url: str = stage.session().client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


STANDARD, FIFO = "memes-{}", "orders-{}.fifo"
READS_BOTH = pytest.mark.parametrize("workload", [(STANDARD, FIFO)], ids=["both"], indirect=True)


@pytest.fixture(scope="module")
def server(
    deployed: Mapping[str, Any], stage_folder: StageFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """The stage's EKS cluster, whose API server accepts the role of the function `control`."""
    emulator, secret = lifecycle.running(stage_folder), secrets.token_hex(16)
    assert emulator is not None
    server = Server(tmp_path_factory.mktemp("eks") / "cluster", token_reviews=eks.token_reviews(emulator, secret))
    eks.attach(stage_folder, server.cluster, secret)
    yield server
    server.stop()


@pytest.fixture
def workload(server: Server, deployment: Deployment, request: pytest.FixtureRequest) -> Iterator[Workload]:
    """A Deployment whose pods read queues of these kinds."""
    name = request.node.name.partition("[")[0].removeprefix("test_")[:30].strip("_").replace("_", "-")
    queues = [QueueName(f"demo-{kind.format(name)}") for kind in request.param]
    workload = Workload.deploy(server, deployment, queues)
    with workload.pods.running():
        workload.namespace.rolled_out("deployments", WEB)
        yield workload


@pytest.fixture
def stage(deployment: Deployment, workload: Workload) -> Iterator[Stage]:
    """The stage with the consumer; at the end, nothing of a split is left."""
    stage = Stage(deployment, workload)
    yield stage
    stage.wait_until_over()
    assert stage.temporary_queues() == []


def register(stage: Stage, workload: Workload) -> None:
    with stage.control() as control:
        control.ask("apply", {"documents": [workload.registry()]})


# In the proof that nothing is lost: messages of each queue, and who reads when.
MESSAGES = 1500
VISITS: Visits = {"alice": (0, 30), "bob": (5, 22), "carol": (14, 16)}
POD_KILLS, BETWEEN_POD_KILLS = 4, 6.0


@READS_BOTH
def test_nothing_is_lost_while_pods_and_functions_are_killed(
    stage: Stage, workload: Workload, stage_folder: StageFolder
) -> None:
    """Meanwhile the owner rolls out another image; the specification and its managers are the owner's at the end."""

    def roll_out() -> None:
        wait_for(workload.is_split, "the workload reads temporary queues", seconds=END_SECONDS)
        workload.owner_sets_image("consumer:2")

    def kill_pods() -> None:
        for _ in range(POD_KILLS):
            time.sleep(BETWEEN_POD_KILLS)
            workload.pods.kill_one()

    register(stage, workload)
    prove_that_nothing_is_lost(stage, stage_folder, visits=VISITS, count=MESSAGES, meanwhile=[roll_out, kill_pods])

    assert workload.pods.kills == POD_KILLS
    assert '"image": "consumer:2"' in spec_of(workload.namespace)
    assert spec_of(workload.namespace) == spec_of(workload.untouched)
    assert managers_of(workload.namespace) == managers_of(workload.untouched)
