"""The client of a cluster, and the printed role, against the real API server with its controllers."""

import json
from dataclasses import dataclass, replace

import boto3
import pytest
from typer.testing import CliRunner

from signalbox.aws.splitting.kubernetes.access import ApiAddress
from signalbox.aws.splitting.kubernetes.api import ClusterRefused, ClusterUnavailable, FieldConflict, PatchKind
from signalbox.aws.splitting.kubernetes.client import ClusterClient
from signalbox.aws.splitting.kubernetes.service_account import ServiceAccountAccess
from signalbox.cli.main import app
from tests.fakes.rendezvous import START
from tests.kubernetes.cluster import Api, ApiError, Namespace, deployment

ACCOUNT = "signalbox"
QUEUE = {"QUEUE": "orders"}
WEB = "web"


@dataclass
class Stage:
    """A stage with a service account in a namespace, whose token is in a secret."""

    namespace: Namespace
    client: ClusterClient

    def path(self, resource: str, name: str = "") -> str:
        return self.namespace.path(resource, name)


@pytest.fixture
def stage(aws, kubernetes, namespace) -> Stage:
    namespace.create("serviceaccounts", {"metadata": {"name": ACCOUNT}})
    secrets = boto3.client("secretsmanager")
    arn = secrets.create_secret(Name=namespace.name, SecretString=namespace.account_token(ACCOUNT))["ARN"]
    connection = ApiAddress(kubernetes.cluster.endpoint, kubernetes.cluster.ca)
    return Stage(namespace, ClusterClient("lab", ServiceAccountAccess("lab", connection, arn, secrets, lambda: START)))


def role(namespace: Namespace, *options: str) -> list[dict[str, object]]:
    """Apply the role that the command prints, as the administrator; return its documents."""
    command = ["split", "kubernetes", "rbac", "--namespace", namespace.name, "--json", *options]
    account = ["--service-account", f"{namespace.name}/{ACCOUNT}"]
    items = json.loads(CliRunner().invoke(app, [*command, *account], catch_exceptions=False).stdout)["items"]
    for document in items:
        place = f"/namespaces/{namespace.name}" if "namespace" in document["metadata"] else ""
        path = f"/apis/{document['apiVersion']}{place}/{document['kind'].lower()}s"
        namespace.api.call("POST", path, document)
    return items


@pytest.fixture
def limited(stage) -> Stage:
    """Return a stage with the printed role for one Deployment, in a namespace that has more."""
    for name in (WEB, "other"):
        stage.namespace.create("deployments", deployment(name, env=QUEUE))
    for name in ("queues", "others"):
        stage.namespace.create("configmaps", {"metadata": {"name": name}, "data": {"queue": "orders"}})
    stage.namespace.create("secrets", {"metadata": {"name": "password"}, "stringData": {"password": "x"}})
    role(stage.namespace, "--target", f"deployment/{WEB}", "--config-map", "queues", "--crd")
    return stage


@pytest.fixture
def account(limited, kubernetes) -> Api:
    """Return the access of the stage's service account for calls that the stage never makes."""
    return replace(Api.of(kubernetes.cluster), token=limited.namespace.account_token(ACCOUNT))


def test_everything_that_splitting_does_is_allowed(limited):
    client, path = limited.client, limited.path("deployments", WEB)
    template = {"spec": {"containers": [{"name": "main", "env": [{"name": "QUEUE", "value": "mirrord-x"}]}]}}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": template}}

    assert client.get(path)["metadata"]["name"] == WEB
    applied = client.apply(path, {**manifest, "metadata": {"name": WEB}}, force=True)
    assert "signalbox" in {entry["manager"] for entry in applied["metadata"]["managedFields"]}
    patched = client.patch(path, {"metadata": {"annotations": {"a": "b"}}}, kind=PatchKind.MERGE)
    assert patched["metadata"]["annotations"]["a"] == "b"
    remove = [{"op": "remove", "path": "/metadata/annotations/a"}]
    assert "a" not in client.patch(path, remove, kind=PatchKind.JSON)["metadata"].get("annotations", {})
    assert client.get(limited.path("pods"), labelSelector="app=web")["kind"] == "PodList"
    assert client.get(f"/api/v1/namespaces/{limited.namespace.name}")["metadata"]["name"] == limited.namespace.name
    assert client.get(limited.path("configmaps", "queues"))["data"] == {"queue": "orders"}
    registries = f"/apis/queues.mirrord.metalbear.co/v1alpha/namespaces/{limited.namespace.name}"
    assert client.get(f"{registries}/mirrordworkloadqueueregistries") is None  # they are not installed


@pytest.mark.parametrize(
    ("method", "resource", "name"),
    [
        ("GET", "secrets", "password"),
        ("GET", "secrets", ""),
        ("GET", "configmaps", "others"),
        ("GET", "configmaps", ""),
        ("GET", "deployments", ""),
        ("GET", "deployments", "other"),
        ("PATCH", "deployments", "other"),
        ("PATCH", "deployments", f"{WEB}/scale"),
        ("PATCH", "deployments", f"{WEB}/status"),
        ("PUT", "deployments", WEB),
        ("DELETE", "deployments", WEB),
        ("POST", "deployments", ""),
        ("POST", "pods", "any/exec"),
        ("GET", "pods", "any/log"),
        ("DELETE", "pods", "any"),
        ("POST", "pods", ""),
        ("GET", "serviceaccounts", ACCOUNT),
        ("POST", "serviceaccounts", f"{ACCOUNT}/token"),
        ("GET", "roles", ""),
        ("POST", "rolebindings", ""),
        ("GET", "statefulsets", WEB),
    ],
    ids=lambda part: part or "all",
)
def test_everything_else_is_refused(limited, account, method, resource, name):
    document = deployment("other", env=QUEUE) if method in ("PUT", "POST") else {} if method == "PATCH" else None

    kind = PatchKind.MERGE.value if method == "PATCH" else "application/json"

    with pytest.raises(ApiError) as refused:
        account.call(method, limited.path(resource, name), document, kind=kind)

    assert refused.value.status == 403


def test_another_namespace_is_refused(limited, kubernetes):
    other = kubernetes.new_namespace()
    other.create("deployments", deployment(WEB, env=QUEUE))

    with pytest.raises(ClusterRefused, match="403 Forbidden"):
        limited.client.get(other.path("deployments", WEB))
    with pytest.raises(ClusterRefused, match="403 Forbidden"):
        limited.client.get(other.path("pods"))
    with pytest.raises(ClusterRefused, match="403 Forbidden"):
        limited.client.get(f"/api/v1/namespaces/{other.name}")


def test_a_role_without_config_maps_reads_none(stage):
    stage.namespace.create("configmaps", {"metadata": {"name": "queues"}})
    role(stage.namespace, "--target", f"deployment/{WEB}", "--no-config-maps")

    with pytest.raises(ClusterRefused, match="403 Forbidden"):
        stage.client.get(stage.path("configmaps", "queues"))


def test_a_missing_right_is_named_with_the_command_that_gives_it(stage):
    with pytest.raises(ClusterRefused) as refused:
        stage.client.get(stage.path("deployments", WEB))

    text = str(refused.value)
    assert text.startswith(f"cluster 'lab': get deployments/web in namespace {stage.namespace.name}: 403 Forbidden (")
    assert 'cannot get resource "deployments"' in text
    assert "apply the role that `signalbox split kubernetes rbac --service-account` prints" in text


def test_a_conflict_names_the_manager_that_owns_the_field(limited):
    limited.namespace.apply("deployments", deployment(WEB, env={"QUEUE": "owners"}), manager="helm", force=True)
    template = {"spec": {"containers": [{"name": "main", "env": [{"name": "QUEUE", "value": "mirrord-x"}]}]}}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": WEB},
        "spec": {"template": template},
    }

    with pytest.raises(FieldConflict) as conflict:
        limited.client.apply(limited.path("deployments", WEB), manifest)

    assert "helm" in conflict.value.managers
    assert any('name="QUEUE"' in path for path in conflict.value.fields)


def test_a_stale_version_is_retried_later(limited):
    path = limited.path("deployments", WEB)
    patch = {"metadata": {"resourceVersion": "1", "annotations": {"a": "b"}}}

    with pytest.raises(ClusterUnavailable, match="409: the object has changed"):
        limited.client.patch(path, patch, kind=PatchKind.MERGE)


def test_an_invalid_value_is_not_in_the_text(limited):
    path = limited.path("deployments", WEB)
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/env/0/name", "value": "my password="}]

    with pytest.raises(ClusterRefused, match="422 Invalid") as refused:
        limited.client.patch(path, patch, kind=PatchKind.JSON)

    assert "spec.template.spec.containers[0].env[0].name" in str(refused.value)
    assert "password" not in str(refused.value)


pytestmark = pytest.mark.kubernetes
