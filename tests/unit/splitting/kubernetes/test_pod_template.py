"""Queue names in the variables of a pod template."""

import pytest

from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import UnresolvedQueue
from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind
from signalbox.splitting.kubernetes.pod_template import Reading, env_entry
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.target import Target
from tests.unit.splitting.kubernetes.workloads import container, from_map, plain, template

ORDERS, TEMPORARY = QueueName("orders"), QueueName("mirrord-tmp")
VARIABLE, LIKE = NameSource(SourceKind.VARIABLE, "Q"), NameSource(SourceKind.VARIABLES_LIKE, "^Q")
QUEUES_MAP = {"configMapRef": {"name": "queues"}}


def queue(*sources: NameSource) -> RegisteredQueue:
    return RegisteredQueue(QueueId("q"), sources or (VARIABLE,))


def registry(*sources: NameSource) -> Registry:
    return Registry(Target.parse("deployment/web@shop.main"), (queue(*sources),))


@pytest.mark.parametrize(
    ("found", "source"),
    [
        (container(env=plain(Q="orders")), VARIABLE),
        (container(env=plain(Q="https://sqs.us-east-1.amazonaws.com/123456789012/orders")), VARIABLE),
        (container(env=[from_map("Q", "orders")]), VARIABLE),
        (container(envFrom=[QUEUES_MAP]), NameSource(SourceKind.VARIABLE, "ORDERS")),
        (container(envFrom=[{**QUEUES_MAP, "prefix": "Q_"}]), NameSource(SourceKind.VARIABLE, "Q_ORDERS")),
        (container(envFrom=[{**QUEUES_MAP, "prefix": "Q_"}]), NameSource(SourceKind.VARIABLES_LIKE, "^Q_ORD")),
        (container(env=plain(ORDERS="orders"), envFrom=[QUEUES_MAP]), NameSource(SourceKind.VARIABLES_LIKE, "^ORD")),
        (container(env=plain(Q="orders"), envFrom=[{"secretRef": {"name": "s"}}]), VARIABLE),
        (container(), NameSource(SourceKind.VARIABLE, "Q", fallback="orders")),
        (container(env=[from_map("Q", "x", optional=True)]), NameSource(SourceKind.VARIABLE, "Q", fallback="orders")),
        (container(env=plain(Q='{"a": "orders"}')), NameSource(SourceKind.VARIABLE, "Q", selector=".[]")),
    ],
)
def test_a_name_is_found_where_mirrord_finds_it(found, source):
    assert list(template(found).queue_names(queue(source))) == [ORDERS]
    assert template(found).reading(registry(source)) == Reading(frozenset({ORDERS}), is_complete=True)


@pytest.mark.parametrize(
    ("found", "source", "reason"),
    [
        (
            container(env=[{"name": "Q", "valueFrom": {"secretKeyRef": {"name": "s", "key": "q"}}}]),
            VARIABLE,
            "variable 'Q' of container 'main' comes from a secret, which is not read; give the queue's name as a plain",
        ),
        (
            container(env=[{"name": "Q", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
            LIKE,
            "comes from the downward API, which is not read",
        ),
        (container(env=[{"name": "Q", "valueFrom": {"newRef": {}}}]), VARIABLE, "comes from another source"),
        (
            container(envFrom=[{"secretRef": {"name": "s"}}]),
            VARIABLE,
            "has no variable 'Q' but takes some from the secret 's', which is not read",
        ),
        (container(env=[*plain(Q="a"), *plain(Q="b")]), VARIABLE, "has variable 'Q' twice; remove one"),
        (container(env=[from_map("Q", "x")]), VARIABLE, "there is no config map 'queues' with 'x'"),
        (container(env=[from_map("Q", "x", "none")]), VARIABLE, "there is no config map 'none' with 'x'"),
        (container(envFrom=[{"configMapRef": {"name": "none"}}]), VARIABLE, "there is no config map 'none'"),
        (
            container(envFrom=[{"configMapRef": {"name": "none", "optional": True}}]),
            VARIABLE,
            "no variable 'Q', and there is no fallback",
        ),
        (container(), NameSource(SourceKind.VARIABLE, "Q", containers=("x",)), "no container x; there is main"),
    ],
)
def test_a_name_that_cannot_be_read_is_refused_with_the_reason(found, source, reason):
    with pytest.raises(UnresolvedQueue, match=reason):
        list(template(found).queue_names(queue(source)))
    assert not template(found).reading(registry(source)).is_complete
    assert template(found).renamed_where_found(registry(source), {ORDERS: TEMPORARY}) == {"main": {}}


def test_only_variables_with_queue_names_are_renamed():
    found = template(container(env=plain(Q="orders", LEVEL="info")), container("sidecar", env=plain(Q="orders")))

    assert found.renamed(registry(), {ORDERS: TEMPORARY}) == {"main": {"Q": TEMPORARY}, "sidecar": {"Q": TEMPORARY}}
    assert found.renamed(registry(NameSource(SourceKind.VARIABLE, "Q", containers=("main",))), {ORDERS: TEMPORARY}) == {
        "main": {"Q": TEMPORARY},
        "sidecar": {},
    }


def test_two_sources_of_one_variable_rename_both_of_its_names():
    found = template(container(env=plain(Q="a=orders b=orders")))
    sources = [NameSource(SourceKind.VARIABLE, "Q", pattern=f"{name}=([a-z]+)") for name in "ab"]

    assert found.renamed(registry(*sources), {ORDERS: TEMPORARY})["main"] == {"Q": "a=mirrord-tmp b=mirrord-tmp"}


def test_a_value_without_a_renamed_queue_keeps_its_whitespace():
    found = template(container(env=plain(Q='{"a":"orders"}')))

    changed = found.renamed(registry(NameSource(SourceKind.VARIABLE, "Q", selector=".[]")), {})

    assert changed == {"main": {"Q": '{"a":"orders"}'}}


def test_all_readable_variables_are_listed():
    secret = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "p"}}}
    found = template(container(env=[*plain(Q="x", LEVEL="debug"), secret, {"name": "EMPTY"}], envFrom=[QUEUES_MAP]))

    assert found.environments == {
        "main": {"Q": "x", "LEVEL": "debug", "ORDERS": "orders", "orders": "orders", "EMPTY": ""}
    }


def test_the_entry_of_a_variable_is_found_by_its_container():
    pod = template(container(env=plain(Q="x")), container("sidecar", env=plain(P="y"))).pod

    assert env_entry(pod, "main", "Q") == {"name": "Q", "value": "x"}
    assert env_entry(pod, "sidecar", "Q") is None
