"""The `target` of a mirrord.json."""

import pytest

from signalbox.splitting.model.mirrord_target import configured_target
from signalbox.splitting.model.target import InvalidTarget


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("deployment/meme-app/main", "deployment/meme-app/container/main"),
        ("deployment/meme-app/container/main", "deployment/meme-app/container/main"),
        ("rollout/meme-app", "rollout/meme-app"),
        ("lambda/meme-app", "lambda/meme-app"),
        ({"path": "deployment/meme-app", "namespace": "shop"}, "deployment/meme-app@shop"),
        ({"path": "deployment/meme-app/main", "namespace": "shop"}, "deployment/meme-app@shop/container/main"),
        ({"path": "deployment/meme-app@test", "namespace": "shop"}, "deployment/meme-app@test"),
        ({"path": {"deployment": "meme-app", "container": "main"}}, "deployment/meme-app/container/main"),
        ({"path": {"stateful_set": "meme-app"}, "namespace": "shop"}, "statefulset/meme-app@shop"),
        ({"deployment": "meme-app", "container": "main"}, "deployment/meme-app/container/main"),
        ({"path": "lambda/meme-app", "namespace": "shop"}, "lambda/meme-app"),
    ],
)
def test_a_target_is_a_text_or_an_object(value, expected):
    found = configured_target({"target": value, "feature": {}})

    assert found is not None
    assert found.with_container == expected


@pytest.mark.parametrize("document", [{}, {"target": None}, {"target": "targetless"}, []])
def test_a_config_without_a_target_has_none(document):
    assert configured_target(document) is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (7, "target: expected a text such as"),
        ("pod/x", "target: workload kind 'pod' of Kubernetes"),
        (
            {"path": "pod/x", "namespaces": "y"},
            "target.namespaces: unknown field; known here: path, namespace\ntarget.path: w",
        ),
        ({"namespace": "x"}, "target.path: expected a text"),
        ({"path": "deployment/x", "namespace": "A"}, "target.namespace: deployment/x: 'A' is no namespace"),
        ({"path": "deployment/x", "namespace": "a.b"}, "target.namespace: deployment/x: 'a.b' is no namespace"),
        ({"path": "deployment/x", "namespace": 7}, "target.namespace: expected a text, not 7"),
        ({"path": {"deployment": "x", "rollout": "y"}}, "target.path: expected exactly one of deployment"),
        ({"path": {"deployment": "x", "n": "y"}}, "target.path.n: unknown field"),
        ({"deployment": ""}, "target.deployment: is missing or empty"),
    ],
)
def test_an_invalid_target_is_refused_with_its_path(value, reason):
    with pytest.raises(InvalidTarget, match=reason.replace("[", r"\[")):
        configured_target({"target": value})
