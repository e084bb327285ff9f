"""Kubernetes workloads switched to temporary queues and back, on a real API server with its controllers."""

import copy
from dataclasses import dataclass, replace
from datetime import timedelta

import boto3
import pytest

from signalbox.aws.splitting.kubernetes.access import ApiAddress, Remedies
from signalbox.aws.splitting.kubernetes.client import ClusterClient
from signalbox.aws.splitting.targets.kubernetes import KubernetesTargets
from signalbox.aws.splitting.targets.original_queues import OriginalQueues
from signalbox.aws.splitting.targets.workloads import Workloads
from signalbox.errors import EffectRefused
from signalbox.filters.languages import Languages
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolver
from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Phase, Split, SplitQueue, SplitSession, Stage
from signalbox.splitting.model.target import Target
from tests.fakes.clock import START, MemoryTime
from tests.fakes.splitting import MemoryAnnotations
from tests.kubernetes.cluster import (
    MERGE,
    STAY,
    STRATEGIC,
    ApiError,
    Namespace,
    Server,
    deployment,
    env_of,
    managers,
    stateful_set,
)
from tests.patience import wait_for
from tests.unit.splitting.consumers.registries import HOME

pytestmark = pytest.mark.kubernetes

ORDERS, DEPLOYED, SESSION = QueueName("orders"), QueueName("mirrord-tmp-x-fallback-orders"), QueueName("mirrord-tmp-y")
URL = "https://sqs.us-east-1.amazonaws.com/123456789012/"
ENV = {"LEVEL": "info", "QUEUE": URL + ORDERS}
VARIABLE = NameSource(SourceKind.VARIABLE, "QUEUE")
RESOURCES = {"Deployment": "deployments", "StatefulSet": "statefulsets", "Rollout": "rollouts"}
ANY_OBJECT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
OWNER = "kubectl-client-side-apply"
FROM_MAP = {"name": "QUEUE", "valueFrom": {"configMapKeyRef": {"name": "queues", "key": "orders"}}}


@dataclass
class StaticAccess:
    """The access of the cluster's administrator."""

    server: Server
    remedies = Remedies("", "", "", "")

    def connection(self, *, again: bool = False) -> ApiAddress:
        return ApiAddress(self.server.cluster.endpoint, self.server.cluster.ca)

    def token(self, *, again: bool = False) -> str:
        return self.server.cluster.token


@dataclass
class Workload:
    """A workload of the tests with the adapter that switches it."""

    namespace: Namespace
    targets: KubernetesTargets
    annotations: MemoryAnnotations
    time: MemoryTime
    kind: str = "Deployment"
    sources: tuple[NameSource, ...] = (VARIABLE,)

    @property
    def target(self) -> Target:
        return Target.parse(f"{self.kind}/web@{self.namespace.name}.test")

    @property
    def registry(self) -> Registry:
        return Registry(self.target, (RegisteredQueue(QueueId("orders"), self.sources),))

    @property
    def resource(self) -> str:
        return RESOURCES[self.kind]

    def deploy(self, manifest: dict[str, object], *, manager: str = OWNER) -> dict[str, object]:
        """Create the workload as a manager, and return it when its pods are ready."""
        self.kind = str(manifest["kind"])
        self.namespace.api.call("POST", self.namespace.path(self.resource), manifest, fieldManager=manager)
        return self.namespace.rolled_out(self.resource, "web")

    def split(self, stage: Stage = Stage.STARTING, *, live: bool = False) -> Split:
        queue = SplitQueue(QueueId("orders"), ORDERS, DEPLOYED, timedelta(seconds=45))
        sessions = (_session(),) if live else ()
        return Split(self.target, (queue,), sessions, stage, START, timedelta(seconds=120))

    def observe(self, stage: Stage = Stage.STARTING) -> TargetState:
        return self.targets.observe(self.split(stage), self.registry)

    def switch(self) -> None:
        self.targets.switch(self.split(), self.registry)

    def switch_back(self) -> None:
        self.targets.switch_back(self.split(Stage.RESTORING), self.registry)

    def switched(self) -> None:
        """Switch, and wait until the pods read the temporary queue."""
        self.switch()
        self.await_state(TargetState.TEMPORARY)

    def switched_back(self) -> dict[str, object]:
        """Switch back, wait until the pods read the original, and return the workload when it is rolled out."""
        self.switch_back()
        self.await_state(TargetState.ORIGINAL, Stage.RESTORING)
        return self.namespace.rolled_out(self.resource, "web")

    def await_state(self, state: TargetState, stage: Stage = Stage.STARTING) -> None:
        wait_for(lambda: self.observe(stage) is state, f"the workload is {state}")

    def find(self) -> dict[str, object]:
        return self.namespace.get(self.resource, "web")

    def env(self) -> dict[str, str | None]:
        return env_of(self.find()["spec"]["template"])


def _session() -> SplitSession:
    return SplitSession(SessionId("ann"), "ann", "{}", START, START, Phase.STARTING, START, {ORDERS: SESSION})


@pytest.fixture
def workload(aws: None, kubernetes: Server, namespace: Namespace) -> Workload:
    sqs = boto3.client("sqs")
    sqs.create_queue(QueueName=ORDERS, Attributes={"VisibilityTimeout": "45"})
    client = ClusterClient("test", StaticAccess(kubernetes))
    annotations, time = MemoryAnnotations(), MemoryTime()
    targets = KubernetesTargets(
        Workloads(lambda _: client), OriginalQueues(sqs), Resolver(Languages(), HOME), annotations, time.now
    )
    return Workload(namespace, targets, annotations, time)


def owned(document: dict[str, object], *, times: bool = True) -> dict[str, object]:
    """Return the parts of a workload that its owner determines: specification, metadata and field managers."""
    metadata = copy.deepcopy(document["metadata"])
    for name in ("generation", "resourceVersion"):
        metadata.pop(name)
    metadata["managedFields"] = [one for one in metadata["managedFields"] if one.get("subresource") != "status"]
    for entry in metadata["managedFields"] if not times else ():
        entry.pop("time")  # of the manager's last change
    metadata.get("annotations", {}).pop("deployment.kubernetes.io/revision", None)  # the controller counts
    return {"metadata": metadata, "spec": document["spec"]}


def with_env(manifest: dict[str, object], *entries: dict[str, object], **container: object) -> dict[str, object]:
    """Return a manifest whose container has these variables."""
    changed = copy.deepcopy(manifest)
    changed["spec"]["template"]["spec"]["containers"][0] |= {"env": list(entries), **container}
    return changed


@pytest.mark.parametrize(
    "manifest",
    [deployment("web", env=ENV, replicas=2), stateful_set("web", env=ENV, replicas=2)],
    ids=["Deployment", "StatefulSet"],
)
def test_a_workload_is_switched_and_is_as_before_after_the_way_back(workload, manifest):
    before = workload.deploy(manifest)

    workload.switched()
    switched = workload.find()
    pods = [env_of(pod) for pod in workload.namespace.pods("app=web")]
    after = workload.switched_back()

    assert workload.observe(Stage.RESTORING) is TargetState.ORIGINAL
    assert pods == [{"LEVEL": "info", "QUEUE": URL + DEPLOYED}] * 2
    assert "signalbox" in managers(switched)
    assert owned(after) == owned(before)


@pytest.mark.parametrize("manager", ["kubectl", "flux"])
def test_fields_that_were_applied_on_the_server_return_to_their_manager(workload, manager):
    workload.namespace.apply("deployments", deployment("web", env=ENV), manager=manager)
    before = workload.namespace.rolled_out("deployments", "web")

    workload.switched()
    after = workload.switched_back()

    assert owned(after) == owned(before)
    manifest = deployment("web", env={**ENV, "LEVEL": "debug"})
    workload.namespace.apply("deployments", manifest, manager=manager)  # without a conflict


def test_every_manager_of_a_variable_gets_its_field_back(workload):
    workload.deploy(deployment("web", env={"QUEUE": "other"}))
    patch = {
        "spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "QUEUE", "value": ORDERS}]}]}}}
    }
    workload.namespace.patch("deployments", "web", patch, kind=STRATEGIC, fieldManager="kubectl-set")
    before = workload.namespace.rolled_out("deployments", "web")

    workload.switched()
    assert managers(workload.find()) == {OWNER, "signalbox"}
    after = workload.switched_back()

    assert owned(after) == owned(before)


@pytest.mark.parametrize("make", [deployment, stateful_set])
def test_a_name_from_a_config_map_is_a_plain_value_while_the_workload_is_switched(workload, make):
    workload.namespace.create("configmaps", {"metadata": {"name": "queues"}, "data": {"orders": ORDERS}})
    before = workload.deploy(with_env(make("web", env={}), {"name": "LEVEL", "value": "info"}, FROM_MAP))
    assert workload.targets.environment(workload.registry, {ORDERS: SESSION}) == {"QUEUE": SESSION}

    workload.switched()
    switched = workload.env()
    joined = workload.targets.environment(workload.registry, {ORDERS: SESSION})
    after = workload.switched_back()

    assert switched == {"LEVEL": "info", "QUEUE": DEPLOYED}
    assert joined == {"QUEUE": SESSION}
    assert owned(after) == owned(before)


def test_a_name_from_env_from_is_overridden_while_the_workload_is_switched(workload):
    workload.sources = (NameSource(SourceKind.VARIABLES_LIKE, "^APP_QUEUE_"),)
    workload.namespace.create("configmaps", {"metadata": {"name": "queues"}, "data": {"QUEUE_ORDERS": URL + ORDERS}})
    source = {"prefix": "APP_", "configMapRef": {"name": "queues"}}
    before = workload.deploy(with_env(deployment("web", env={}), envFrom=[source]))

    workload.switched()
    switched = workload.env()
    after = workload.switched_back()

    assert switched == {"APP_QUEUE_ORDERS": URL + DEPLOYED}
    assert owned(after) == owned(before)


def test_a_variable_that_the_workload_lacks_is_added_with_the_fallback_and_removed(workload):
    workload.sources = (replace(VARIABLE, fallback=ORDERS),)
    before = workload.deploy(deployment("web", env={"LEVEL": "info"}))

    workload.switched()
    switched = workload.env()
    after = workload.switched_back()

    assert switched == {"LEVEL": "info", "QUEUE": DEPLOYED}
    assert owned(after) == owned(before)


def test_a_terminating_pod_that_reads_the_original_is_waited_for(workload):
    workload.deploy(deployment("web", env=ENV, annotations={STAY: "true"}))

    workload.switch()
    workload.namespace.rolled_out("deployments", "web")
    (old,) = [pod for pod in workload.namespace.pods("app=web") if "deletionTimestamp" in pod["metadata"]]
    states = {workload.observe() for _ in range(3)}
    _let_go(workload, old)

    assert states == {TargetState.CHANGING}
    workload.await_state(TargetState.TEMPORARY)


def test_a_pod_that_reads_the_temporary_queue_is_waited_for_on_the_way_back(workload):
    workload.deploy(deployment("web", env=ENV, annotations={STAY: "true"}))
    workload.switch()
    workload.namespace.rolled_out("deployments", "web")
    (old,) = [pod for pod in workload.namespace.pods("app=web") if "deletionTimestamp" in pod["metadata"]]
    _let_go(workload, old)
    workload.await_state(TargetState.TEMPORARY)

    workload.switch_back()
    workload.namespace.rolled_out("deployments", "web")
    state = workload.observe(Stage.RESTORING)
    for pod in workload.namespace.pods("app=web"):
        _let_go(workload, pod)

    assert state is TargetState.CHANGING
    workload.await_state(TargetState.ORIGINAL, Stage.RESTORING)


def _let_go(workload: Workload, pod: dict[str, object]) -> None:
    patch = {"metadata": {"annotations": {STAY: None}}}
    workload.namespace.patch("pods", pod["metadata"]["name"], patch, kind=MERGE)


def test_a_workload_that_is_scaled_meanwhile_is_switched(workload):
    workload.deploy(deployment("web", env=ENV))

    workload.switch()
    workload.namespace.patch("deployments", "web", {"spec": {"replicas": 3}}, kind=MERGE, fieldManager="hpa")

    workload.await_state(TargetState.TEMPORARY)
    assert [env_of(pod)["QUEUE"] for pod in workload.namespace.pods("app=web")] == [URL + DEPLOYED] * 3
    assert workload.switched_back()["spec"]["replicas"] == 3


def test_what_the_owner_changes_during_the_split_stays(workload):
    manifest = deployment("web", env=ENV)
    workload.namespace.apply("deployments", manifest, manager="flux")
    workload.namespace.rolled_out("deployments", "web")
    workload.switched()

    changed = deployment("web", env={**ENV, "LEVEL": "debug"})
    workload.namespace.apply("deployments", changed, manager="flux", force=True)
    noticed = workload.observe(Stage.SPLIT)
    workload.switched()
    after = workload.switched_back()

    assert noticed is TargetState.ORIGINAL
    assert env_of(after["spec"]["template"]) == {**ENV, "LEVEL": "debug"}
    assert managers(after) == {"flux"}
    workload.namespace.apply("deployments", manifest, manager="flux")  # without a conflict


def test_a_manifest_that_its_owner_applies_again_is_noticed_and_switched_again(workload):
    """`kubectl apply` without `--server-side` sends the differences, which are the owner's values of the variables."""
    before = workload.deploy(deployment("web", env=ENV))
    workload.switched()

    template = {"spec": {"template": before["spec"]["template"]}}
    workload.namespace.patch("deployments", "web", template, kind=STRATEGIC, fieldManager=OWNER)
    noticed = workload.observe(Stage.SPLIT)
    workload.switched()
    after = workload.switched_back()

    assert noticed is TargetState.ORIGINAL
    assert owned(after, times=False) == owned(before, times=False)


def test_a_patch_that_adds_the_source_of_a_switched_variable_is_refused(workload):
    """`kubectl apply` without `--server-side` sends such a patch, which leaves the literal value."""
    workload.namespace.create("configmaps", {"metadata": {"name": "queues"}, "data": {"orders": ORDERS}})
    before = workload.deploy(with_env(deployment("web", env={}), FROM_MAP))
    workload.switched()

    template = {"spec": {"template": before["spec"]["template"]}}
    with pytest.raises(ApiError, match="may not be specified when `value` is not empty"):
        workload.namespace.patch("deployments", "web", template, kind=STRATEGIC, fieldManager=OWNER)

    assert owned(workload.switched_back()) == owned(before)


def test_an_owner_that_applies_a_name_from_a_config_map_again_wins(workload):
    workload.namespace.create("configmaps", {"metadata": {"name": "queues"}, "data": {"orders": ORDERS}})
    manifest = with_env(deployment("web", env={}), FROM_MAP)
    workload.namespace.apply("deployments", manifest, manager="flux")
    before = workload.namespace.rolled_out("deployments", "web")
    workload.switched()

    workload.namespace.apply("deployments", manifest, manager="flux")  # without a conflict
    noticed = workload.observe(Stage.SPLIT)
    workload.switched()
    after = workload.switched_back()

    assert noticed is TargetState.ORIGINAL
    assert owned(after, times=False) == owned(before, times=False)


def test_another_queue_of_the_owner_stays(workload):
    workload.namespace.apply("deployments", deployment("web", env=ENV), manager="flux")
    workload.namespace.rolled_out("deployments", "web")
    workload.switched()

    manifest = deployment("web", env={**ENV, "QUEUE": "invoices"})
    workload.namespace.apply("deployments", manifest, manager="flux", force=True)
    with pytest.raises(EffectRefused, match="no longer reads the queues with which its split began"):
        workload.switch()
    after = workload.switched_back()

    assert env_of(after["spec"]["template"])["QUEUE"] == "invoices"
    assert managers(after) == {"flux"}


def definition(group: str, version: str, kind: str, plural: str, *, schema: object = ANY_OBJECT) -> dict[str, object]:
    """Return a CustomResourceDefinition with a status."""
    fields = {"type": "object", "properties": {"spec": schema, "status": ANY_OBJECT}}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": fields},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [served],
        },
    }


def listed(*names: str) -> dict[str, object]:
    """Return the schema of a Rollout whose lists are maps by these keys, as in newer definitions of Argo Rollouts."""

    def items(properties: dict[str, object]) -> dict[str, object]:
        maps = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(names)} if names else {}
        return {"type": "array", "items": {**ANY_OBJECT, "required": ["name"], "properties": properties}, **maps}

    name = {"name": {"type": "string"}}
    containers = items({**name, "env": items(name)})
    pod = {**ANY_OBJECT, "properties": {"containers": containers}}
    return {**ANY_OBJECT, "properties": {"template": {**ANY_OBJECT, "properties": {"spec": pod}}}}


@pytest.mark.parametrize("names", [(), ("name",)], ids=["plain lists", "lists as maps"])
def test_a_rollout_is_switched_and_is_as_before_after_the_way_back(workload, kubernetes, names):
    """No controller of Argo Rollouts runs here: the test writes the status."""
    group = "argoproj.io"
    found = definition(group, "v1alpha1", "Rollout", "rollouts", schema=listed(*names))
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rollouts.{group}"
    kubernetes.define(found)
    kubernetes.api.call("PATCH", path, {"spec": found["spec"]}, kind=MERGE)
    manifest = {**deployment("web", env=ENV), "apiVersion": f"{group}/v1alpha1", "kind": "Rollout"}
    workload.kind = "Rollout"
    workload.namespace.apply("rollouts", manifest, manager="argocd-controller")

    def progress(phase: str = "Healthy") -> None:
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 1)
        generation = str(workload.find()["metadata"]["generation"])
        status = {**counts, "observedGeneration": generation, "phase": phase, "stableRS": "a", "currentPodHash": "a"}
        workload.namespace.api.call(
            "PATCH", workload.namespace.path("rollouts", "web") + "/status", {"status": status}, kind=MERGE
        )

    progress()
    before = workload.find()
    workload.switch()
    changing = workload.observe()
    progress("Paused")
    paused = workload.observe()
    progress()
    switched, env = workload.observe(), workload.env()
    workload.switch_back()
    progress()

    assert changing is paused is TargetState.CHANGING
    assert (switched, env) == (TargetState.TEMPORARY, {**ENV, "QUEUE": URL + DEPLOYED})
    assert workload.observe(Stage.RESTORING) is TargetState.ORIGINAL
    assert owned(workload.find()) == owned(before)
    workload.namespace.apply("rollouts", manifest, manager="argocd-controller")  # without a conflict
