"""The demo of `make up` shares the queue of a Deployment, and says how where the cluster is not built."""

from dataclasses import replace

import pytest

from signalbox.cli.shared.deployment import Deployment
from signalbox.local import kubernetes
from signalbox.local.demo.kubernetes import kubernetes_rows
from signalbox.local.stage_folder import StageFolder


@pytest.mark.emulator
@pytest.mark.kubernetes
def test_the_demo_shares_the_queue_of_a_deployment(deployment: Deployment, stage_folder: StageFolder) -> None:
    seen = list(kubernetes_rows(replace(deployment, folder=stage_folder.path), build=True))

    assert seen[1:] == [
        ("on Kubernetes: deliveries", "alice: 10, bob: 10, deployed: 10"),
        ("on Kubernetes: afterwards", "deployment/demo-meme-app@demo is as before"),
    ]


def test_the_demo_names_the_option_that_builds_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "is_built", lambda: False)

    assert [value for _, value in kubernetes_rows(Deployment({}, "", ""))] == [
        'the cluster is not built yet: make up ARGS="--kubernetes" builds it once, in 5 to 13 minutes'
    ]
