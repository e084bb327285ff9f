"""Kubernetes workloads by the answers of an API in memory; test_kubernetes_targets.py has a real server."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import boto3
import pytest

from signalbox.aws.splitting.discovery import AwsDiscovery, NotDiscoverable
from signalbox.aws.splitting.kubernetes.api import ClusterGone, ClusterRefused, ClusterUnavailable, ObjectChanged
from signalbox.aws.splitting.targets.kubernetes import KubernetesTargets
from signalbox.aws.splitting.targets.kubernetes_registries import ClusterRegistries
from signalbox.aws.splitting.targets.original_queues import OriginalQueues
from signalbox.aws.splitting.targets.task_definition import AmbiguousVariable
from signalbox.aws.splitting.targets.workloads import UnsuitableWorkload, Workloads
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.filters.languages import Languages
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import MissingReference, QueueElsewhere, Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind
from signalbox.splitting.control.problems import problems
from signalbox.splitting.kubernetes.field_managers import FIELD_MANAGER, owners
from signalbox.splitting.kubernetes.switch_record import ANNOTATION, SwitchRecord, VariableBefore, read_record
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Phase, Split, SplitQueue, SplitSession, Stage
from signalbox.splitting.model.target import Target
from tests.fakes.clock import START, MemoryTime
from tests.fakes.kubernetes import MemoryKubernetes
from tests.fakes.splitting import MemoryAnnotations
from tests.unit.splitting.consumers.registries import HOME, new, new_queue, old, old_queue, property_list
from tests.unit.splitting.kubernetes.workloads import container, from_map, managed, plain, workload

ORDERS, DEPLOYED, SESSION = QueueName("orders"), QueueName("mirrord-tmp-x-fallback-orders"), QueueName("mirrord-tmp-y")
QUEUE = RegisteredQueue(QueueId("orders"), (NameSource(SourceKind.VARIABLE, "Q"),))
WEB = Target.parse("deployment/web@shop.main")
PATH = "/apis/apps/v1/namespaces/shop/deployments/web"
PODS = "/api/v1/namespaces/shop/pods"
HAS = managed("Q", ".", "f:name", "f:value")
LEFT = managed("Q", ".", "f:name")
OURS = managed("Q", ".", "f:name", "f:value", manager=FIELD_MANAGER, operation="Apply")
DONE = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}


@dataclass
class Cluster:
    """The API with one workload, and the adapter."""

    api: MemoryKubernetes
    targets: KubernetesTargets
    annotations: MemoryAnnotations
    target: Target = WEB
    path: str = PATH

    @property
    def registry(self) -> Registry:
        return Registry(self.target, (QUEUE,))

    def put(self, env: object, *, status: object = DONE, **metadata: object) -> dict[str, Any]:
        """Store the workload with the variables of its container, and return it."""
        found = workload(container(env=env), metadata={"managedFields": [HAS], **metadata}, status=status)
        self.api.objects[self.path] = found
        return found

    def switched(self, *managers: object, before: object = plain(Q="orders")) -> dict[str, Any]:
        """Store the workload as it is after a switch."""
        found = self.put(plain(Q=DEPLOYED), managedFields=[LEFT, OURS, *managers])
        (entry,) = before or [None]
        ownerships = () if entry is None else tuple(_owned())
        record = SwitchRecord(str(self.target), {("main", "Q"): VariableBefore(entry, ownerships)})
        found["spec"]["template"]["metadata"] = {"annotations": {ANNOTATION: record.text()}}
        return found

    def split(self, stage: Stage = Stage.STARTING, *, live: bool = False) -> Split:
        queue = SplitQueue(QueueId("orders"), ORDERS, DEPLOYED, timedelta(seconds=45))
        session = SplitSession(SessionId("a"), "a", "{}", START, START, Phase.STARTING, START, {ORDERS: SESSION})
        return Split(self.target, (queue,), (session,) if live else (), stage, START, timedelta(seconds=120))

    def observe(self, stage: Stage = Stage.SPLIT, *, live: bool = False) -> TargetState:
        return self.targets.observe(self.split(stage, live=live), self.registry)

    def switch_back(self) -> None:
        self.targets.switch_back(self.split(Stage.RESTORING), self.registry)

    def environment(self) -> object:
        return self.targets.environment(self.registry, {ORDERS: SESSION})

    def pods(self, *pods: object) -> None:
        self.api.objects[PODS] = {"items": list(pods)}


def _owned():
    return owners([HAS], "main", "Q")


def pod(phase: str = "Running", **values: str) -> dict[str, object]:
    return {"spec": {"containers": [container(env=plain(**values))]}, "status": {"phase": phase}}


@pytest.fixture
def cluster(aws: None) -> Cluster:
    sqs = boto3.client("sqs")
    sqs.create_queue(QueueName=ORDERS, Attributes={"VisibilityTimeout": "45"})
    api, annotations = MemoryKubernetes(), MemoryAnnotations()
    resolver = Resolver(Languages(), HOME)
    targets = KubernetesTargets(Workloads(lambda _: api), OriginalQueues(sqs), resolver, annotations, MemoryTime().now)
    return Cluster(api, targets, annotations)


def test_a_queue_is_found_by_a_name_from_a_config_map(cluster):
    cluster.put([from_map("Q", "orders")])
    cluster.api.objects["/api/v1/namespaces/shop/configmaps/queues"] = {"data": {"orders": "orders"}}

    (found,) = cluster.targets.find(cluster.registry)

    assert (found.original, found.visibility) == (ORDERS, timedelta(seconds=45))


def test_a_config_map_without_data_has_no_names(cluster):
    cluster.put([from_map("Q", "orders")])
    cluster.api.objects["/api/v1/namespaces/shop/configmaps/queues"] = {}

    with pytest.raises(UnresolvedQueue, match="there is no config map 'queues' with 'orders'"):
        cluster.targets.find(cluster.registry)


@pytest.mark.parametrize("name", ["../secrets/db", "../../other/configmaps/queues", "queues?x=", "."])
def test_a_pod_template_reads_config_maps_of_its_namespace_alone(cluster, name):
    cluster.put([from_map("Q", "orders", name)])
    cluster.api.objects[f"/api/v1/namespaces/shop/configmaps/{name}"] = {"data": {"orders": "orders"}}

    with pytest.raises(UnresolvedQueue, match="there is no config map"):
        cluster.targets.find(cluster.registry)


def test_a_config_map_with_a_queue_of_another_account_is_refused(cluster):
    cluster.put([from_map("Q", "orders")])
    foreign = {"orders": "https://sqs.us-east-1.amazonaws.com/210987654321/orders"}
    cluster.api.objects["/api/v1/namespaces/shop/configmaps/queues"] = {"data": foreign}

    with pytest.raises(QueueElsewhere, match="'Q' names a queue of account 210987654321 in region us-east-1"):
        cluster.targets.find(cluster.registry)


@pytest.mark.parametrize("more", [{}, {"envFrom": [{"secretRef": {"name": "s"}}]}])
def test_a_queue_without_its_variable_does_not_block_the_others(cluster, more):
    workload = cluster.put(plain(Q="orders"))
    workload["spec"]["template"]["spec"]["containers"][0] |= more
    absent = RegisteredQueue("optional", (NameSource(SourceKind.VARIABLES_LIKE, "^ABSENT"),))

    found = cluster.targets.find(replace(cluster.registry, queues=(absent, *cluster.registry.queues)))

    assert [one.original for one in found] == [ORDERS]
    with pytest.raises(MissingReference):
        cluster.targets.find(replace(cluster.registry, queues=(absent,)))


def test_an_absent_or_paused_workload_is_refused(cluster):
    with pytest.raises(UnsuitableWorkload, match="cluster 'main' has no Deployment 'web' in namespace 'shop'"):
        cluster.targets.find(cluster.registry)
    cluster.put(plain(Q="orders"))["spec"]["paused"] = True
    with pytest.raises(UnsuitableWorkload, match="is paused; resume it"):
        cluster.targets.find(cluster.registry)


def test_a_workload_that_another_stage_has_switched_is_refused(cluster):
    cluster.switched()

    with pytest.raises(UnsuitableWorkload, match="annotation signalbox/split in its pod template: another stage"):
        cluster.targets.find(cluster.registry)


def test_a_local_command_gets_the_variables_from_before_the_switch(cluster):
    cluster.put(plain(Q="orders"))
    before = cluster.environment()
    cluster.switched()

    assert before == cluster.environment() == {"Q": SESSION}


def test_a_session_cannot_start_on_a_workload_that_reads_other_queues(cluster):
    for changed in ("invoices", "hunter 2"):  # a value may be a secret by now
        cluster.put(plain(Q=changed))

        with pytest.raises(UnresolvedQueue, match="was changed and reads other queues than those of its split"):
            cluster.environment()


def test_a_session_of_a_container_gets_its_variables(cluster):
    found = workload(container(env=plain(Q="orders")), container("b", plain(Q="https://sqs/1/orders")))
    cluster.api.objects[PATH] = found

    with pytest.raises(AmbiguousVariable):
        cluster.environment()
    cluster.target = replace(WEB, container="b")
    assert cluster.environment() == {"Q": f"https://sqs/1/{SESSION}"}
    cluster.target = replace(WEB, container="c")
    with pytest.raises(UnresolvedQueue, match="has no container 'c'; it has main, b"):
        cluster.environment()


def test_a_workload_reads_the_temporary_queue_when_every_pod_does(cluster):
    cluster.put(plain(Q=DEPLOYED))
    cluster.pods(pod(Q=DEPLOYED), pod("Failed", Q="orders"), pod("Succeeded", Q="orders"))
    everywhere = cluster.observe()
    cluster.pods(pod(Q=DEPLOYED), pod(Q="orders"))
    somewhere = cluster.observe()
    cluster.pods(pod(Q=DEPLOYED), pod())
    without = cluster.observe()

    assert everywhere is TargetState.TEMPORARY
    assert somewhere is without is TargetState.CHANGING
    assert (PODS, {"labelSelector": "app=web"}) in cluster.api.queries


def test_a_workload_reads_the_original_when_no_pod_reads_the_temporary_queue(cluster):
    cluster.put(plain(Q="orders"))
    cluster.pods(pod(Q="orders"), pod())

    assert cluster.observe(Stage.RESTORING) is TargetState.ORIGINAL
    cluster.pods(pod(Q=DEPLOYED))
    assert cluster.observe(Stage.RESTORING) is TargetState.CHANGING


def test_an_incomplete_rollout_is_waited_for(cluster):
    cluster.put(plain(Q=DEPLOYED), status={})

    assert cluster.observe() is TargetState.CHANGING
    assert cluster.observe(Stage.RESTORING) is TargetState.TEMPORARY
    assert problems(cluster.annotations.of(WEB)) == []


def test_a_workload_in_which_something_of_signalbox_is_left_is_not_restored(cluster):
    cluster.put(plain(Q="orders"), managedFields=[LEFT, OURS])
    managing = cluster.observe(Stage.RESTORING)
    cluster.put(plain(Q="orders"), annotations={ANNOTATION: "{}"})

    assert managing is cluster.observe(Stage.RESTORING) is TargetState.MIXED
    assert cluster.observe(Stage.DRAINING) is TargetState.ORIGINAL


def test_a_paused_rollout_ends_a_start_and_is_noted_later(cluster):
    cluster.put(plain(Q=DEPLOYED), status={})["spec"]["paused"] = True

    assert cluster.observe(Stage.STARTING) is TargetState.CHANGING
    (note,) = problems(cluster.annotations.of(WEB))
    assert note == "deployment/web@shop.main is paused; resume it (kubectl rollout resume)"
    with pytest.raises(EffectRefused, match="is paused"):
        cluster.observe(Stage.STARTING, live=True)
    assert cluster.observe(Stage.SPLIT, live=True) is TargetState.CHANGING


def test_a_step_of_a_rollouts_strategy_is_noted_and_ends_no_start(cluster):
    cluster.target = Target.parse("rollout/web@shop.main")
    cluster.path = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web"
    cluster.put(plain(Q=DEPLOYED), status={"phase": "Paused"})

    assert cluster.observe(Stage.STARTING, live=True) is TargetState.CHANGING
    (note,) = problems(cluster.annotations.of(cluster.target))
    assert "promote it" in note


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [(ClusterRefused("403"), EffectFailed), (ClusterUnavailable("away"), ClusterUnavailable)],
)
def test_a_cluster_that_does_not_answer_is_unknown(cluster, refusal, expected):
    cluster.api.refusal = refusal

    with pytest.raises(expected):
        cluster.observe()


def test_a_deleted_workload_or_cluster_is_gone(cluster):
    assert cluster.observe() is TargetState.GONE
    cluster.api.refusal = ClusterGone("EKS has no cluster main")
    assert cluster.observe() is TargetState.GONE


def test_a_deleted_namespace_is_gone_although_its_role_went_with_it(cluster):
    cluster.api.refused_paths.add(PATH)
    deleted = cluster.observe()
    cluster.api.objects["/api/v1/namespaces/shop"] = {}

    assert deleted is TargetState.GONE
    with pytest.raises(EffectFailed, match="403"):
        cluster.observe()


def test_a_switch_applies_the_variable_and_its_record_on_the_version_that_was_read(cluster):
    cluster.put(plain(Q="orders", LEVEL="info"))
    cluster.api.conflicts = 2
    cluster.annotations.put(WEB, f"switched:{(START - timedelta(hours=1)).isoformat()}", "")

    cluster.targets.switch(cluster.split(), cluster.registry)

    (applied,) = cluster.api.applied
    template = applied["spec"]["template"]
    assert applied["metadata"]["resourceVersion"] == "7"
    assert template["spec"] == {"containers": [{"name": "main", "env": plain(Q=DEPLOYED)}]}
    (before,) = read_record(template["metadata"]["annotations"], str(WEB)).before.values()
    assert before.entry == plain(Q="orders")[0]
    assert [one.fields for one in before.owners] == [{"f:value": {}}]
    assert list(cluster.annotations.of(WEB)) == [f"switched:{START.isoformat()}"]


def test_a_workload_that_changes_at_every_attempt_is_tried_again_later(cluster):
    cluster.put(plain(Q="orders"))
    cluster.api.conflicts = 10

    with pytest.raises(ObjectChanged):
        cluster.targets.switch(cluster.split(), cluster.registry)


@pytest.mark.parametrize(("managers", "name"), [([HAS], "kubectl"), ([], "its owner")])
def test_the_manager_that_sets_a_variable_again_is_noted(cluster, managers, name):
    cluster.put(plain(Q="orders"), managedFields=managers)

    cluster.targets.switch(cluster.split(Stage.SPLIT), cluster.registry)

    (note,) = problems(cluster.annotations.of(WEB))
    assert note == f"deployment/web@shop.main: {name} has set Q again during the split"


def test_a_repeated_switch_keeps_what_is_known_of_a_switched_variable(cluster):
    other = RegisteredQueue(QueueId("o"), (NameSource(SourceKind.VARIABLE, "P"),))
    found = cluster.switched()
    found["spec"]["template"]["spec"]["containers"][0]["env"] += plain(P="orders", R=DEPLOYED)
    third = RegisteredQueue(QueueId("r"), (NameSource(SourceKind.VARIABLE, "R"),))
    registry = Registry(WEB, (QUEUE, other, third))

    cluster.targets.switch(cluster.split(), registry)

    (applied,) = cluster.api.applied
    before = read_record(applied["spec"]["template"]["metadata"]["annotations"], str(WEB)).before
    assert {name: one.entry["value"] for (_, name), one in before.items()} == dict.fromkeys("PQR", "orders")


def test_a_workload_that_reads_other_queues_is_not_switched(cluster):
    cluster.put(plain(Q="invoices"))

    with pytest.raises(EffectRefused, match="no longer reads the queues with which its split began"):
        cluster.targets.switch(cluster.split(), cluster.registry)


def test_a_deleted_workload_cannot_be_switched(cluster):
    with pytest.raises(EffectRefused, match="has no Deployment 'web'"):
        cluster.targets.switch(cluster.split(), cluster.registry)


def test_a_workload_that_is_set_back_again_and_again_is_not_switched(cluster):
    cluster.put(plain(Q="orders"))
    for number in range(5):
        at = START - timedelta(seconds=number)
        cluster.annotations.put(WEB, f"switched:{at.isoformat()}", "")
    cluster.annotations.put(WEB, f"switched:{(START - timedelta(hours=1)).isoformat()}", "")

    with pytest.raises(EffectRefused, match="is set back to its original queues again and again"):
        cluster.targets.switch(cluster.split(), cluster.registry)


def test_a_way_back_restores_the_variable_and_hands_its_field_over(cluster):
    cluster.switched()

    def react(document: dict[str, Any]) -> None:
        if cluster.api.patches:
            return
        metadata = cluster.api.applied[0]["metadata"]
        document.update(
            workload(
                container(env=plain(Q="orders")),
                metadata={"managedFields": [LEFT, OURS], "annotations": metadata["annotations"]},
            )
        )

    cluster.api.react = react
    cluster.switch_back()

    (applied,), (operations,) = cluster.api.applied, cluster.api.patches
    assert applied["spec"]["template"] == {"spec": {"containers": [{"name": "main", "env": plain(Q="orders")}]}}
    assert operations == [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "remove", "path": "/metadata/annotations/signalbox~1split"},
        {"op": "add", "path": "/metadata/managedFields", "value": [HAS]},
    ]


def test_a_name_from_a_config_map_is_restored_by_a_patch(cluster):
    cluster.switched(before=[from_map("Q", "orders")])

    cluster.switch_back()

    assert cluster.api.applied == []
    assert cluster.api.patches[0][1]["value"] == [from_map("Q", "orders")]


@pytest.mark.parametrize(("operation", "patches"), [("Apply", 1), ("Update", 0)])
def test_a_manager_that_applies_a_name_from_a_config_map_can_apply_it_again(cluster, operation, patches):
    manager = managed("Q", ".", "f:name", "f:valueFrom", operation=operation)
    found = cluster.put(plain(Q=DEPLOYED), managedFields=[managed("Q", ".", "f:name", operation=operation), OURS])
    record = {("main", "Q"): VariableBefore(from_map("Q", "orders"), tuple(owners([manager], "main", "Q")))}
    text = SwitchRecord(str(WEB), record).text()
    found["spec"]["template"]["metadata"] = {"annotations": {ANNOTATION: text}}
    found["spec"]["template"]["spec"]["containers"].append(container("b", plain(Q="orders")))

    cluster.targets.switch(cluster.split(), cluster.registry)

    assert len(cluster.api.patches) == patches
    for operations in cluster.api.patches:
        (shared, ours) = operations[-1]["value"]
        assert shared == managed("Q", ".", "f:name", "f:value", operation="Apply")
        assert ours["manager"] == FIELD_MANAGER


def test_a_rollout_is_switched_by_a_patch(cluster):
    cluster.target = Target.parse("rollout/web@shop.main")
    cluster.path = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web"
    cluster.put(plain(Q="orders"))

    cluster.targets.switch(cluster.split(), cluster.registry)

    assert cluster.api.patches[0][1]["value"] == plain(Q=DEPLOYED)


def test_a_temporary_name_without_a_record_becomes_the_originals(cluster):
    cluster.put(plain(Q=DEPLOYED), managedFields=[LEFT, OURS])

    cluster.switch_back()

    assert cluster.api.applied[0]["spec"]["template"]["spec"]["containers"][0]["env"] == plain(Q="orders")


def test_a_variable_that_its_owner_removed_is_not_restored(cluster):
    cluster.switched()["metadata"]["managedFields"] = [OURS]

    cluster.switch_back()

    assert cluster.api.applied[0]["spec"]["template"] == {}


def test_variables_that_the_owner_changed_stay(cluster):
    found = cluster.switched()
    found["spec"]["template"]["spec"]["containers"][0]["env"] = plain(Q="invoices")

    cluster.switch_back()

    assert cluster.api.applied[0]["spec"]["template"] == {}


def test_a_workload_without_anything_of_signalbox_stays_as_it_is(cluster):
    cluster.put(plain(Q="orders"))

    cluster.switch_back()

    assert (cluster.api.applied, cluster.api.patches) == ([], [])


def test_fields_are_handed_over_without_a_record(cluster):
    cluster.put(plain(Q="orders"), managedFields=[LEFT, OURS])

    cluster.switch_back()

    assert cluster.api.patches == [
        [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "add", "path": "/metadata/managedFields", "value": [LEFT]},
        ]
    ]


def test_a_workload_is_discovered_by_its_variables(cluster):
    url = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
    cluster.put(plain(Q=url, LEVEL="info"))
    clients = (boto3.client(name) for name in ("lambda", "ecs", "iam"))
    discovery = AwsDiscovery(*clients, HOME, "mirrord-", cluster.targets)

    (found,) = discovery.discover(WEB)

    assert found["metadata"] == {
        "name": "web-main",
        "namespace": "shop",
        "annotations": {"signalbox/cluster": "main"},
    }
    assert found["spec"]["consumer"] == {"name": "web", "workloadType": "Deployment", "container": "main"}
    assert found["spec"]["queues"]["orders"]["nameSource"] == {"envVar": "Q"}


def test_a_stage_without_clusters_discovers_no_workloads(aws):
    discovery = AwsDiscovery(*(boto3.client(name) for name in ("lambda", "ecs", "iam")), HOME, "mirrord-")

    with pytest.raises(NotDiscoverable, match="this stage has no cluster"):
        discovery.discover(WEB)


def test_the_registries_of_a_workload_are_found_in_its_namespace():
    api = MemoryKubernetes()
    group = "/apis/queues.mirrord.metalbear.co"
    ours, other = old({"q": old_queue()}, kind="Deployment", name="web"), old({"q": old_queue()}, kind="Deployment")
    queues = [{"id": "k", "kind": "kafka", "queueConfig": "secret"}, new_queue({"env": "P"}, queueConfig="options")]
    config, options = new(*queues, kind="Deployment", name="web"), property_list(sns="true")
    secret = {**options, "metadata": {"name": "secret"}}
    place = {"namespace": "shop", "uid": "1", "managedFields": []}
    for document in (ours, other, config, options, secret):
        document["metadata"] |= place
    broken = {"metadata": {"name": "x", **place}, "spec": {}}
    registries = ClusterRegistries(lambda _: api)
    nothing = registries.documents(WEB)
    api.objects[f"{group}/v1alpha/namespaces/shop/mirrordworkloadqueueregistries"] = {"items": [ours, broken, other]}
    without_lists = registries.documents(WEB)
    api.objects[f"{group}/v1/namespaces/shop/mirrordsplitconfigs"] = {"items": [config]}
    api.objects["/apis/mirrord.metalbear.co/v1/namespaces/shop/mirrordpropertylists"] = {"items": [options, secret]}

    found = registries.documents(WEB)

    kept = [
        {**one, "metadata": {"name": one["metadata"]["name"], "namespace": "shop"}} for one in (ours, config, options)
    ]
    assert nothing == []
    assert without_lists == kept[:1]
    assert found == kept
    assert not any("/namespaces/mirrord/" in path for path, _ in api.queries)


def test_a_property_list_is_taken_from_the_operators_namespace_if_its_own_has_none():
    api, lists = MemoryKubernetes(), "/apis/mirrord.metalbear.co/v1/namespaces/mirrord/mirrordpropertylists"
    config = new(new_queue({"env": "P"}, queueConfig="options"), kind="Deployment", name="web")
    config["metadata"] |= {"namespace": "shop"}
    shared = property_list("mirrord", sns="true")
    api.objects["/apis/queues.mirrord.metalbear.co/v1/namespaces/shop/mirrordsplitconfigs"] = {"items": [config]}
    api.objects[lists] = {"items": [shared]}
    registries = ClusterRegistries(lambda _: api)

    assert registries.documents(WEB) == [config, shared]
    api.refused_paths.add(lists)
    with pytest.raises(ClusterRefused, match="403"):
        registries.documents(WEB)
