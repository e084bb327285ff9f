"""Commands for Kubernetes workloads: their full names, the registries of their cluster, and a cluster that is away."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from signalbox.errors import EffectFailed
from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import ConsumedQueue
from signalbox.splitting.consumers.registry_file import InvalidRegistry
from signalbox.splitting.control.ports import NoRegistry, NothingDeclared
from signalbox.splitting.control.presentation import UnknownSession
from signalbox.splitting.control.problems import problems
from signalbox.splitting.control.registries import RegistryTooLarge
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.target import InvalidTarget, Target, TargetKind
from tests.unit.splitting.consumers.registries import new, new_queue, old, old_queue
from tests.unit.splitting.control.control_stage import APP, ControlStage

WEB = Target.parse("deployment/web@shop.main")
ORDERS = QueueName("orders")


@dataclass
class MemoryClusterRegistries:
    """The documents in clusters, by target."""

    found: dict[Target, Sequence[object]] = field(default_factory=dict)

    def documents(self, target: Target) -> Sequence[object]:
        return self.found.get(target, ())


class KubernetesStage(ControlStage):
    """A stage with the clusters `main` and `east`, and the workload `WEB` without a registry."""

    def __init__(self, *clusters: str) -> None:
        super().__init__()
        self.declared = MemoryClusterRegistries()
        self.kinds = {TargetKind.LAMBDA: self.targets, TargetKind.DEPLOYMENT: self.targets}
        self.clusters = clusters or ("main", "east")
        for target in (WEB, Target.parse("deployment/web@default.main")):
            self.targets.found[target] = [ConsumedQueue(QueueId("orders"), ORDERS, timedelta(seconds=30))]
            self.targets.variables[target] = {"Q": ORDERS}


def registry(namespace: str | None = "shop", **metadata: object) -> dict[str, object]:
    place = {"namespace": namespace} if namespace else {}
    document = old({"orders": old_queue()}, kind="Deployment", name="web")
    return {**document, "metadata": {"name": "web", **place, **metadata}}


def test_a_registry_is_stored_by_the_full_name_of_its_workload():
    stage = KubernetesStage()
    east = registry(annotations={"signalbox/cluster": "east"})

    found = stage.ask("apply", documents=[registry(), registry(None), east])

    assert found["targets"] == ["deployment/web@shop.main", "deployment/web@default.main", "deployment/web@shop.east"]
    listed = {one["target"]: one for one in stage.ask("registries")}
    assert listed["deployment/web@shop.main"]["documents"] == [registry()]
    assert listed["deployment/web@shop.east"]["documents"] == [east]
    assert listed["deployment/web@shop.east"]["source"] == "applied"


def test_a_registry_for_an_unknown_cluster_is_refused():
    with pytest.raises(InvalidTarget, match="kubernetes_clusters has no 'west'; it has main, east"):
        KubernetesStage().ask("apply", documents=[registry(annotations={"signalbox/cluster": "west"})])


def test_a_stage_without_clusters_refuses_registries_of_workloads():
    with pytest.raises(InvalidTarget, match="this stage has no cluster: set kubernetes_clusters"):
        ControlStage().ask("apply", documents=[registry()])
    with pytest.raises(InvalidTarget, match="kubernetes_clusters has no 'west'; it has none"):
        ControlStage().ask("apply", documents=[registry(annotations={"signalbox/cluster": "west"})])


@pytest.mark.parametrize("text", ["deployment/web/main", "deployment/web@shop", "deployment/web@shop.main"])
def test_mirrords_first_example_starts_a_session(text):
    """The session targets a workload without its namespace; the registry, which has it, is the only one."""
    stage = KubernetesStage()
    stage.ask("apply", documents=[registry()])

    started = stage.start(target=text)
    stage.pass_time(6, alive=[])

    assert started["target"] == "deployment/web@shop.main"
    assert stage.split(WEB) is not None
    assert stage.heartbeat(target=text)["phase"] == "ready"
    assert stage.ask("status", target=text)["splits"][0]["target"] == "deployment/web@shop.main"
    assert stage.stop(target=text)["phase"] == "ending"


def test_the_container_of_a_session_reaches_its_environment(monkeypatch):
    stage, containers = KubernetesStage(), []
    stage.ask("apply", documents=[registry()])
    environment = stage.targets.environment
    monkeypatch.setattr(
        stage.targets,
        "environment",
        lambda registry, names: containers.append(registry.target.container) or environment(registry, names),
    )

    stage.start(target="deployment/web/main")
    stage.start("bob", target="deployment/web@shop")

    assert containers == ["main", None]


def test_a_registry_in_the_cluster_is_read_at_the_start_of_each_split():
    stage = KubernetesStage()
    stage.declared.found[WEB] = [registry()]

    stage.start(target=WEB)
    (listed,) = [one for one in stage.ask("registries") if one["target"] == str(WEB)]
    stage.pass_time(6)
    stage.stop(target=WEB)
    stage.pass_time(120)
    stage.declared.found.clear()

    assert (listed["source"], listed["documents"]) == ("cluster main", [registry()])
    with pytest.raises(NoRegistry, match="apply or discover one first, or create one in its namespace"):
        stage.start(target=WEB)


def test_a_session_is_told_which_queues_of_its_registry_are_not_on_sqs():
    stage, mixed = KubernetesStage(), registry()
    mixed["spec"]["queues"]["notes"] = {"queueType": "RMQ"}
    stage.declared.found[WEB] = [mixed]

    stage.start(target=WEB)
    stage.pass_time(6)

    assert stage.heartbeat(target=WEB)["notes"] == ["not on SQS, so not split: notes (RMQ)"]


def test_a_session_is_told_which_queues_its_target_does_not_consume():
    stage, more = KubernetesStage(), registry()
    more["spec"]["queues"]["optional"] = old_queue(nameSource={"envVar": "ABSENT"})
    stage.declared.found[WEB] = [more]
    seen = []
    observe = stage.targets.observe
    stage.targets.observe = lambda split, registry: seen.append(registry.queues) or observe(split, registry)

    stage.start(target=WEB)
    stage.pass_time(6)

    assert stage.heartbeat(target=WEB)["notes"] == [
        "deployment/web@shop.main has no reference to these queues of its registry, so they are not split: optional"
    ]
    assert {queue.queue_id for queues in seen for queue in queues} == {"orders"}


def test_a_stage_without_access_to_clusters_reads_no_registries_there():
    stage = KubernetesStage()
    stage.declared = NothingDeclared()

    with pytest.raises(NoRegistry, match="has no registry"):
        stage.start(target=WEB)


def test_an_applied_registry_takes_precedence_over_that_in_the_cluster():
    stage = KubernetesStage()
    stage.ask("apply", documents=[registry()])
    stage.declared.found[WEB] = [new(new_queue({"env": "("}))]

    assert stage.start(target=WEB)["phase"] == "starting"


@pytest.mark.parametrize(
    ("queues", "refusal"),
    [({}, InvalidRegistry), ({f"queue-{n}": old_queue() for n in range(2000)}, RegistryTooLarge)],
)
def test_an_unusable_registry_in_the_cluster_is_refused_and_not_stored(queues, refusal):
    stage = KubernetesStage()
    document = {**registry(), "spec": old(queues, kind="Deployment", name="web")["spec"]}
    stage.declared.found[WEB] = [document]

    with pytest.raises(refusal):
        stage.start(target=WEB)
    assert stage.memory.registries.find(WEB) is None


def test_a_cluster_that_is_away_for_ten_minutes_ends_no_split(monkeypatch):
    stage = KubernetesStage()
    stage.ask("apply", documents=[registry()])
    stage.start(target=WEB)
    stage.start("bob", target=WEB)

    def keep(seconds: int, *alive: str) -> None:
        for _ in range(seconds):
            for session in alive:
                stage.heartbeat(session, target=WEB)
            stage.pass_time(1)

    def away(*_: object) -> TargetState:
        raise EffectFailed("cluster 'main' does not answer")

    keep(15, "ann", "bob")
    with monkeypatch.context() as cluster:
        cluster.setattr(stage.targets, "observe", away)
        stage.stop("bob", target=WEB)
        keep(600, "ann")
        ready = stage.heartbeat(target=WEB)
        with pytest.raises(UnknownSession, match="'bob': it has ended, or the name is wrong; there is 'ann'"):
            stage.heartbeat("bob", target=WEB)
    keep(10, "ann")

    assert ready["phase"] == "ready"
    assert ready["notes"] == ["cluster 'main' does not answer"]
    assert stage.heartbeat(target=WEB)["phase"] == "ready"
    assert [name for name, _ in stage.targets.switches] == ["switch"]


def test_a_stage_that_lost_its_clusters_keeps_its_splits():
    stage = KubernetesStage()
    stage.ask("apply", documents=[registry()])
    stage.start(target=WEB)
    stage.pass_time(6)
    stage.kinds, stage.clusters = {TargetKind.LAMBDA: stage.targets}, ()

    stage.stop(target=WEB)
    stage.pass_time(120)

    assert stage.split(WEB) is not None
    (note,) = problems(stage.memory.annotations.of(WEB))
    assert "this stage has no cluster: set kubernetes_clusters" in note


def test_a_target_that_is_set_back_is_switched_again_and_the_status_says_so():
    stage = ControlStage().ready("ann")

    stage.targets.states[APP] = TargetState.ORIGINAL
    stage.heartbeat()
    stage.ask("reconcile", target=str(APP), holder="x")

    assert stage.targets.switches == [("switch", APP)] * 2
    assert stage.heartbeat()["notes"] == ["lambda/meme-app reads its original queues again; it is switched"]
