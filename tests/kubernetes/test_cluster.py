"""The cluster of tests does what tests of splitting rely on: real rollouts, field managers, rights, and its end."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import urllib3

from signalbox.local.files import CHECKOUT
from signalbox.local.processes import is_alive
from tests.kubernetes.cluster import JSON_PATCH, READY, STAY, ApiError, deployment, env_of, managers, stateful_set
from tests.patience import wait_for

pytestmark = pytest.mark.kubernetes

ENV = {"QUEUE": "orders"}
OWNER = "kubectl"


def container(manifest, **variables):
    """Return a manifest of the same workload that sets these variables alone."""
    env = [{"name": name, "value": value} for name, value in variables.items()]
    kept = {key: manifest[key] for key in ("apiVersion", "kind")}
    pod = {"containers": [{"name": "main", "env": env}]}
    name = {"name": manifest["metadata"]["name"]}
    return {**kept, "metadata": name, "spec": {"template": {"spec": pod}}}


@pytest.mark.parametrize(
    ("resource", "manifest"),
    [
        ("deployments", deployment("web", env=ENV, replicas=3)),
        ("statefulsets", stateful_set("web", env=ENV, replicas=2)),
    ],
    ids=["Deployment", "StatefulSet"],
)
def test_a_changed_template_replaces_every_pod(namespace, resource, manifest):
    namespace.deploy(manifest, resource=resource)
    before = {pod["metadata"]["uid"] for pod in namespace.pods("app=web")}

    namespace.apply(resource, container(manifest, QUEUE="other"), manager="signalbox", force=True)
    namespace.rolled_out(resource, "web")

    wait_for(lambda: not before & {pod["metadata"]["uid"] for pod in namespace.pods("app=web")}, "old pods are gone")
    pods = namespace.pods("app=web")
    assert [env_of(pod) for pod in pods] == [{"QUEUE": "other"}] * manifest["spec"]["replicas"]


def test_a_field_of_another_manager_is_a_conflict_that_names_it(namespace):
    manifest = deployment("web", env=ENV)
    namespace.apply("deployments", manifest, manager=OWNER)

    with pytest.raises(ApiError, match="env") as conflict:
        namespace.apply("deployments", container(manifest, QUEUE="other"), manager="signalbox")

    assert conflict.value.status == 409
    assert managers(namespace.get("deployments", "web")) == {OWNER}


def test_a_pod_stays_unready_until_its_annotation_is_gone(namespace):
    namespace.create("deployments", deployment("web", env=ENV, annotations={READY: "false"}))
    (pod,) = wait_for(lambda: namespace.pods("app=web"), "a pod runs")
    assert namespace.get("deployments", "web")["status"].get("readyReplicas", 0) == 0

    namespace.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": {READY: None}}})

    namespace.rolled_out("deployments", "web")


def test_a_deleted_pod_terminates_until_its_annotation_is_gone(namespace):
    namespace.deploy(deployment("web", env=ENV, annotations={STAY: "true"}))
    (old,) = namespace.pods("app=web")
    name = old["metadata"]["name"]

    namespace.delete("pods", name)
    wait_for(lambda: len(namespace.pods("app=web")) == 2, "another pod runs")
    assert "deletionTimestamp" in namespace.get("pods", name)["metadata"]
    namespace.patch("pods", name, {"metadata": {"annotations": {STAY: None}}})

    wait_for(lambda: namespace.find("pods", name) is None, "the pod is gone")


def test_a_deleted_workload_takes_its_pods_along(namespace):
    namespace.deploy(deployment("web", env=ENV))

    namespace.delete("deployments", "web")

    wait_for(lambda: not namespace.objects("pods"), "the garbage collector has deleted the pods")


def test_a_deleted_namespace_takes_its_objects_along(kubernetes):
    namespace = kubernetes.new_namespace()
    namespace.deploy(deployment("web", env=ENV))

    namespace.remove()

    path = f"/api/v1/namespaces/{namespace.name}"
    wait_for(lambda: kubernetes.api.find(path) is None, "the namespace is gone", seconds=60)


def test_an_account_has_the_rights_of_its_role_alone(namespace):
    one = {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"], "verbs": ["get", "patch"]}
    for name in ("web", "other"):
        namespace.create("deployments", deployment(name, env=ENV))

    limited = namespace.service_account("splitting", one)

    assert limited.get("deployments", "web")["metadata"]["name"] == "web"
    for refused in (
        lambda: limited.get("deployments", "other"),
        lambda: limited.delete("deployments", "web"),
        lambda: limited.objects("secrets"),
    ):
        with pytest.raises(ApiError, match="forbidden") as denied:
            refused()
        assert denied.value.status == 403


def test_an_unknown_token_is_refused(kubernetes):
    with pytest.raises(ApiError, match="Unauthorized"):
        replace(kubernetes.api, token="wrong").get("/api/v1/namespaces")


def test_its_certificate_is_verified(kubernetes):
    with pytest.raises(urllib3.exceptions.SSLError, match="certificate verify failed"):
        urllib3.PoolManager().request("GET", f"{kubernetes.cluster.endpoint}/readyz", retries=False)


def test_objects_and_tokens_outlast_an_absence(kubernetes, namespace):
    namespace.deploy(deployment("web", env=ENV))
    path = [{"op": "replace", "path": "/spec/template/spec/containers/0/env/0/value", "value": "other"}]

    with kubernetes.away(), pytest.raises(urllib3.exceptions.NewConnectionError):
        namespace.get("deployments", "web")

    namespace.patch("deployments", "web", path, kind=JSON_PATCH)
    namespace.rolled_out("deployments", "web")


def test_a_frozen_cluster_answers_nothing(kubernetes):
    pool, url = urllib3.PoolManager(ssl_context=kubernetes.cluster.tls), f"{kubernetes.cluster.endpoint}/readyz"

    with kubernetes.frozen(), pytest.raises(urllib3.exceptions.HTTPError):
        pool.request("GET", url, timeout=0.5, retries=False)

    assert pool.request("GET", url).data == b"ok"


HOLD = """
import os, signal, sys
from pathlib import Path
from signalbox.local import kubernetes
with kubernetes.running(Path(sys.argv[1]) / "cluster") as cluster:
    print(cluster.process, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_ends_with_a_process_that_is_killed(tmp_path):
    holder = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", HOLD, str(tmp_path)],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )

    process = int(holder.stdout)
    wait_for(lambda: not is_alive(process), "the cluster has ended")
