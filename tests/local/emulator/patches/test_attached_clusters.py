"""An EKS cluster of the emulator is the API server that is attached to it, which accepts the emulator's principals."""

import json
import secrets
from datetime import UTC, datetime

import boto3
import pytest

from signalbox.aws.splitting.kubernetes.api import ClusterGone, ClusterRefused
from signalbox.aws.splitting.kubernetes.clusters import Clusters
from signalbox.aws.splitting.kubernetes.settings import EksSetting
from signalbox.clients.stage_session import LocalSession
from signalbox.local import eks
from signalbox.local.emulator.patches.attached_clusters import with_attached_clusters
from tests.kubernetes.cluster import Server, deployment

ATTACHED = {"endpoint": "https://127.0.0.1:1", "ca": "PEM", "secret": "s"}


def test_an_attached_cluster_has_the_fields_of_the_file(tmp_path):
    file, record, other = tmp_path / "clusters.json", {"endpoint": "old"}, {"endpoint": "old"}
    records = [(("1", "r", "local"), record), (("1", "r", "other"), other)]
    describe = with_attached_clusters(lambda name: dict(record), records=lambda: records, file=file)
    assert describe("local") == {"endpoint": "old"}

    file.write_text(json.dumps({"local": ATTACHED}))

    certificate = {"data": "UEVN"}
    expected = {"endpoint": ATTACHED["endpoint"], "certificateAuthority": certificate, "_auth_token": "s"}
    assert describe("local") == expected
    assert other == {"endpoint": "old"}


ROLE, GROUP = "splitting-control", "signalbox"
ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
READ = {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"], "verbs": ["get"]}


@pytest.fixture(scope="module")
def server(running, emulator_folder, tmp_path_factory):
    secret = secrets.token_hex(16)
    server = Server(tmp_path_factory.mktemp("eks") / "cluster", token_reviews=eks.token_reviews(running, secret))
    eks.create_cluster(running.session())
    eks.attach(emulator_folder, server.cluster, secret)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def role(running):
    """The ARN of a role, and the session of a function that has it."""
    session = running.session()
    iam, sts = session.client("iam"), session.client("sts")
    trusted = {**ANYTHING, "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}]}
    arn = iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(trusted))["Role"]["Arn"]
    iam.put_role_policy(RoleName=ROLE, PolicyName="anything", PolicyDocument=json.dumps(ANYTHING))
    key = sts.assume_role(RoleArn=arn, RoleSessionName="function")["Credentials"]
    return arn, _session(running, key)


def _session(running, key) -> boto3.Session:
    return LocalSession(
        running.endpoint_url,
        region=running.region,
        access_key_id=key["AccessKeyId"],
        secret_access_key=key["SecretAccessKey"],
        session_token=key["SessionToken"],
    )


def clusters(session, name=eks.NAME):
    return Clusters({name: EksSetting(name)}, session, lambda: datetime.now(UTC))


@pytest.mark.emulator
@pytest.mark.kubernetes
def test_a_role_with_an_access_entry_has_the_rights_of_its_group(running, server, role):
    arn, session = role
    namespace = server.new_namespace()
    for name in ("web", "other"):
        namespace.create("deployments", deployment(name, env={}))
    namespace.create("roles", {"metadata": {"name": "splitting"}, "rules": [READ]})
    namespace.bind("Role", "splitting", {"kind": "Group", "name": GROUP, "apiGroup": "rbac.authorization.k8s.io"})

    with pytest.raises(ClusterRefused, match="401"):
        clusters(session).api_of(eks.NAME).get(namespace.path("deployments", "web"))
    entries = running.session().client("eks")
    entries.create_access_entry(clusterName=eks.NAME, principalArn=arn, kubernetesGroups=[GROUP], username="control")
    api = clusters(session).api_of(eks.NAME)

    assert api.get(namespace.path("deployments", "web"))["metadata"]["name"] == "web"
    with pytest.raises(ClusterRefused, match="control"):
        api.get(namespace.path("deployments", "other"))


@pytest.mark.emulator
@pytest.mark.kubernetes
def test_a_cluster_that_eks_does_not_have_is_gone(running, role):
    _, session = role

    with pytest.raises(ClusterGone, match="does not exist"):
        clusters(session, "another").api_of("another").get("/api/v1/namespaces/default")
