"""The Kubernetes clusters of the function `control`, from its environment."""

import json

import pytest

from lambdas.splitting import target_wiring
from signalbox.aws.splitting.kubernetes.api import ClusterRefused
from tests.fakes.aws import aws
from tests.handlers.environment import clear_caches

__all__ = ["aws"]
LAB = {"endpoint": "https://k8s.example", "ca": "PEM", "token_secret": "arn"}


@pytest.fixture(autouse=True)
def empty_caches(aws):
    clear_caches(target_wiring)
    yield
    clear_caches(target_wiring)


def test_a_stage_without_clusters_has_none(monkeypatch):
    monkeypatch.setenv("KUBERNETES_CLUSTERS", "{}")

    assert target_wiring.clusters() == {}
    with pytest.raises(ClusterRefused, match="which has: none"):
        target_wiring.api_of("prod")


def test_each_cluster_has_one_api_in_the_order_of_the_setting(monkeypatch):
    monkeypatch.setenv("KUBERNETES_CLUSTERS", json.dumps({"prod": {"eks": "prod-eu"}, "lab": LAB}))

    assert list(target_wiring.clusters()) == ["prod", "lab"]
    assert target_wiring.api_of("lab") is target_wiring.api_of("lab") is not target_wiring.api_of("prod")
