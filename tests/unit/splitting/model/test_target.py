"""Targets, and the refusal of unsupported ones."""

import pytest

from signalbox.splitting.model.target import InvalidTarget, Target, TargetKind


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("lambda/meme-app", Target(TargetKind.LAMBDA, "meme-app")),
        ("Lambda/meme-app", Target(TargetKind.LAMBDA, "meme-app")),
        ("ecs/shop/orders", Target(TargetKind.ECS_SERVICE, "shop/orders")),
        ("EcsService/shop/orders", Target(TargetKind.ECS_SERVICE, "shop/orders")),
        ("ssm//shop/queue", Target(TargetKind.SSM_PARAMETER, "/shop/queue")),
    ],
)
def test_targets_are_named_by_kind_and_name(text, target):
    assert Target.parse(text) == target
    assert Target.parse(str(target)) == target


@pytest.mark.parametrize("text", ["deployment/meme-app", "Rollout/meme-app", "pod/meme-app/container/main"])
def test_a_kubernetes_workload_is_refused_with_the_supported_kinds(text):
    with pytest.raises(InvalidTarget, match=r"runs on Kubernetes, .*: Lambda, EcsService, SsmParameter"):
        Target.parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("meme-app", "has no name"),
        ("lambda/", "has no name"),
        ("queue/meme-app", "'queue' is not supported"),
        ("ecs/orders", "expected CLUSTER/SERVICE"),
    ],
)
def test_an_invalid_target_is_refused_with_the_reason(text, reason):
    with pytest.raises(InvalidTarget, match=reason):
        Target.parse(text)
