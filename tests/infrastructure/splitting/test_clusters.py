"""Access of the function `control` to Kubernetes clusters: an entry in each of EKS, and rights on what is named."""

import json

import pytest

from stacks.settings.context import LARGEST_BYTES
from tests.adapters.splitting.kubernetes.api_server import Authority
from tests.infrastructure.splitting.test_splitting import conditions, resources
from tests.infrastructure.templates import Templates, templates

CONTROL, SPLIT = "Splitting/ControlRole", "Splitting/SplitRole"
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:k8s/token-AbCdEf"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/22222222-2222-3333-4444-555555555555"
LAB = {"endpoint": "https://k8s.example:6443", "ca": Authority().pem, "token_secret": SECRET}
CLUSTERS = json.dumps({"prod": {"eks": "prod-eu"}, "lab": LAB | {"token_secret_key": KEY}, "test": {"eks": "Test_1"}})
ENTRY = "AWS::EKS::AccessEntry"
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html: environment variables
VARIABLES_BYTES = 4096


@pytest.fixture(scope="module")
def chosen() -> Templates:
    """Return a stage with three clusters."""
    return templates(kubernetes_clusters=CLUSTERS, stage="trial")


def test_each_cluster_of_eks_has_an_access_entry_for_control_in_the_group_of_the_stage(chosen):
    entries = chosen.every(ENTRY)

    assert {name: chosen.text(one["Properties"].pop("PrincipalArn")) for name, one in entries.items()} == {
        "Splitting/Control/AccessEntry-prod": CONTROL,
        "Splitting/Control/AccessEntry-test": CONTROL,
    }
    # No managed access policy: roles of Kubernetes, which the cluster's owner applies, say what the group may do.
    expected = {"Type": "STANDARD", "KubernetesGroups": ["signalbox:trial"]}
    assert [one["Properties"] for one in entries.values()] == [
        {"ClusterName": "prod-eu", **expected},
        {"ClusterName": "Test_1", **expected},
    ]


def test_control_describes_the_named_clusters_only(chosen):
    assert resources(chosen, CONTROL, action="eks:DescribeCluster") == {
        f"arn:<Partition>:eks:<Region>:<AccountId>:cluster/{name}" for name in ("prod-eu", "Test_1")
    }


def test_control_reads_the_named_secrets_only_and_uses_their_keys_through_secrets_manager(chosen):
    assert resources(chosen, CONTROL, action="secretsmanager:GetSecretValue") == {SECRET}
    (condition,) = (
        one for one in conditions(chosen, CONTROL, action="kms:Decrypt") if "secretsmanager" in json.dumps(one)
    )
    assert chosen.text(condition["StringEquals"]["kms:ViaService"]) == "secretsmanager.<Region>.amazonaws.com"
    assert KEY in resources(chosen, CONTROL, action="kms:Decrypt")


def test_a_secret_with_the_key_of_aws_needs_no_right_on_a_key():
    stage = templates(kubernetes_clusters=json.dumps({"lab": LAB}))

    assert "secretsmanager" not in json.dumps(conditions(stage, CONTROL, action="kms:Decrypt"))
    assert stage.every(ENTRY) == {}
    assert not resources(stage, CONTROL, action="eks:DescribeCluster")


def test_the_function_split_reaches_no_cluster(chosen):
    assert not resources(chosen, SPLIT, action="eks:DescribeCluster")
    assert not resources(chosen, SPLIT, action="secretsmanager:GetSecretValue")


def test_without_clusters_there_is_no_access(stage):
    assert stage.every(ENTRY) == {}
    assert not resources(stage, CONTROL, action="eks:DescribeCluster")
    assert not resources(stage, CONTROL, action="secretsmanager:GetSecretValue")
    variables = stage.every("AWS::Lambda::Function")["Splitting/Control"]["Properties"]["Environment"]["Variables"]
    assert variables["KUBERNETES_CLUSTERS"] == "{}"


def test_the_function_gets_the_clusters_without_the_keys(chosen):
    variables = chosen.every("AWS::Lambda::Function")["Splitting/Control"]["Properties"]["Environment"]["Variables"]

    clusters = json.loads(variables["KUBERNETES_CLUSTERS"])
    assert list(clusters.items()) == [("prod", {"eks": "prod-eu"}), ("lab", LAB), ("test", {"eks": "Test_1"})]


def test_the_largest_setting_fits_into_the_variables_of_the_function(stage):
    variables = stage.every("AWS::Lambda::Function")["Splitting/Control"]["Properties"]["Environment"]["Variables"]

    # The longest of a URL with names of 80 characters, an ARN and others, which the template has as references.
    longest = {name: value if isinstance(value, str) else "x" * 160 for name, value in variables.items()}
    longest |= {"STAGE": "s" * 30, "KEPT_BUCKET": "x" * 63}
    assert len(json.dumps(longest)) + LARGEST_BYTES < VARIABLES_BYTES
