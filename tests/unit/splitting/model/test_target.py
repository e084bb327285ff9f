"""Targets, and the refusal of unsupported ones."""

import pytest

from signalbox.splitting.model.target import InvalidTarget, Target, TargetKind, completed_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("lambda/meme-app", Target(TargetKind.LAMBDA, "meme-app")),
        ("Lambda/meme-app", Target(TargetKind.LAMBDA, "meme-app")),
        ("ecs/shop/orders", Target(TargetKind.ECS_SERVICE, "shop/orders")),
        ("EcsService/shop/orders", Target(TargetKind.ECS_SERVICE, "shop/orders")),
        ("ssm//shop/queue", Target(TargetKind.SSM_PARAMETER, "/shop/queue")),
        ("deployment/meme-app", Target(TargetKind.DEPLOYMENT, "meme-app")),
        ("Deployment/meme-app@shop", Target(TargetKind.DEPLOYMENT, "meme-app@shop")),
        ("statefulset/meme.app@shop.main", Target(TargetKind.STATEFUL_SET, "meme.app@shop.main")),
        ("rollout/meme-app@shop.main", Target(TargetKind.ROLLOUT, "meme-app@shop.main")),
        ("deploy/meme-app/main", Target(TargetKind.DEPLOYMENT, "meme-app")),
        ("deployments/meme-app", Target(TargetKind.DEPLOYMENT, "meme-app")),
        ("deployment.apps/meme-app", Target(TargetKind.DEPLOYMENT, "meme-app")),
        ("sts/meme-app@shop", Target(TargetKind.STATEFUL_SET, "meme-app@shop")),
        ("StatefulSets/meme-app", Target(TargetKind.STATEFUL_SET, "meme-app")),
        ("ro/meme-app", Target(TargetKind.ROLLOUT, "meme-app")),
        ("rollouts.argoproj.io/meme-app", Target(TargetKind.ROLLOUT, "meme-app")),
    ],
)
def test_targets_are_named_by_kind_and_name(text, target):
    assert Target.parse(text) == target
    assert Target.parse(str(target)) == target


@pytest.mark.parametrize("text", ["deployment/meme-app/main", "deployment/meme-app/container/main"])
def test_a_container_is_kept_and_is_no_part_of_the_name(text):
    target = Target.parse(text)

    assert (str(target), target.container) == ("deployment/meme-app", "main")
    assert target == Target.parse("deployment/meme-app")
    assert Target.parse(target.with_container).container == "main"
    assert Target.parse("deployment/meme-app@shop/main").namespace == "shop"


def test_a_workload_has_a_name_a_namespace_and_a_cluster():
    target = Target.parse("rollout/meme.app@shop.main")

    assert (target.workload, target.namespace, target.cluster) == ("meme.app", "shop", "main")
    assert target.with_container == "rollout/meme.app@shop.main"
    assert (Target.parse("rollout/x").namespace, Target.parse("rollout/x@shop").cluster) == (None, None)
    assert Target.parse("rollout/x").placed(None, "main") == Target.parse("rollout/x")
    assert target.is_on_kubernetes
    assert not Target.parse("lambda/meme-app").is_on_kubernetes


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("deployment/a", [], "deployment/a@default.main"),
        ("deployment/a@shop", [], "deployment/a@shop.main"),
        ("deployment/a@shop.east", [], "deployment/a@shop.east"),
        ("deployment/a", ["deployment/a@shop.east", "deployment/b@shop.main"], "deployment/a@shop.east"),
        ("deployment/a@shop", ["deployment/a@shop.east", "deployment/a@other.main"], "deployment/a@shop.east"),
        ("deployment/a", ["deployment/a@shop.east", "deployment/a@default.main"], "deployment/a@default.main"),
        ("deployment/a", ["rollout/a@shop.east"], "deployment/a@default.main"),
        ("lambda/a", [], "lambda/a"),
    ],
)
def test_what_the_name_of_a_workload_lacks_is_that_of_the_only_known_one_or_the_default(text, known, expected):
    found = completed_target(Target.parse(text), map(Target.parse, known), ["main", "east"])

    assert str(found) == expected


def test_a_completed_target_keeps_its_container():
    known = [Target.parse("deployment/a@shop.main")]

    assert completed_target(Target.parse("deployment/a/main"), known, ["main"]).container == "main"
    assert completed_target(Target.parse("deployment/a/main"), [], ["main"]).container == "main"


def test_a_name_of_several_workloads_is_refused_with_their_names():
    known = map(Target.parse, ["deployment/a@shop.main", "deployment/a@test.main"])

    with pytest.raises(InvalidTarget, match=r"one of several: deployment/a@shop\.main, deployment/a@test\.main; add @"):
        completed_target(Target.parse("deployment/a"), known, ["main"])


def test_a_workload_is_refused_by_a_stage_without_clusters():
    with pytest.raises(InvalidTarget, match="this stage has no cluster: set kubernetes_clusters"):
        completed_target(Target.parse("deployment/a"), [], [])


@pytest.mark.parametrize("kind", ["DaemonSet", "job", "cronjob", "pod", "ReplicaSet"])
def test_other_kubernetes_kinds_are_refused_with_the_supported_kinds(kind):
    supported = "Lambda, EcsService, SsmParameter, Deployment, StatefulSet, Rollout"

    with pytest.raises(InvalidTarget, match=f"of Kubernetes cannot be switched .*: {supported}"):
        Target.parse(f"{kind}/meme-app")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("meme-app", "expected KIND/NAME, such as lambda/meme-app, not 'meme-app'"),
        ("lambda/", "expected KIND/NAME"),
        ("queue/meme-app", "'queue' is not supported"),
        ("ecs/orders", "expected CLUSTER/SERVICE"),
        ("deployment/Meme", "'Meme' is no name of Kubernetes"),
        ("deployment/a@", "'' is no namespace"),
        ("deployment/a@b.", "'' is no cluster"),
        ("deployment/a/", "'' is no container"),
        ("deployment/a/b/c", "expected NAME"),
        ("deployment/a/container/b/c", "expected NAME"),
    ],
)
def test_an_invalid_target_is_refused_with_the_reason(text, reason):
    with pytest.raises(InvalidTarget, match=reason):
        Target.parse(text)
