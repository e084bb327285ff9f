"""The demo of `make up` shares the queue of a Deployment, and says how where the cluster is not built."""

from dataclasses import replace

import pytest

from signalbox.clients.deployment import AwsDeployment, Deployment
from signalbox.flows.trial import Journal, Trial
from signalbox.local import kubernetes
from signalbox.local.demo.kubernetes import show_kubernetes
from signalbox.local.stage_folder import StageFolder


@pytest.mark.emulator
@pytest.mark.kubernetes
def test_the_demo_shares_the_queue_of_a_deployment(deployment: Deployment, stage_folder: StageFolder) -> None:
    trial = Trial(replace(deployment, folder=stage_folder.path), Journal())

    show_kubernetes(trial, build=True)

    *_, shared, restored = trial.journal.rows
    assert shared.detail == "alice: 10, bob: 10, deployed: 10"
    assert restored.detail.startswith("deployment/demo-meme-app@demo is as before, ")


def test_the_demo_names_the_option_that_builds_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "is_built", lambda: False)

    trial = Trial(AwsDeployment({}, "", ""), Journal())

    show_kubernetes(trial)

    assert [row.detail for row in trial.journal.rows] == [
        'the cluster is not built yet: make up ARGS="--kubernetes" builds it once, in 5 to 13 minutes'
    ]
