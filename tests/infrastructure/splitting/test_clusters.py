"""Access of the function `control` to Kubernetes clusters: an entry in each of EKS, and rights on what is named."""

import json

from stacks.settings.context import LARGEST_BYTES
from tests.infrastructure.other_settings import LAB, SECRET
from tests.infrastructure.other_settings import SECRET_KEY as KEY
from tests.infrastructure.splitting.test_splitting import conditions, resources
from tests.infrastructure.templates import templates

CONTROL, SPLIT = "Splitting/ControlRole", "Splitting/SplitRole"
ENTRY = "AWS::EKS::AccessEntry"
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html: environment variables
VARIABLES_BYTES = 4096


def test_each_cluster_of_eks_has_an_access_entry_for_control_in_the_group_of_the_stage(otherwise):
    entries = otherwise.every(ENTRY)

    assert {name: otherwise.text(one["Properties"]["PrincipalArn"]) for name, one in entries.items()} == {
        "Splitting/Control/AccessEntry-prod": CONTROL,
        "Splitting/Control/AccessEntry-test": CONTROL,
    }
    # No managed access policy: roles of Kubernetes, which the cluster's owner applies, say what the group may do.
    expected = {"Type": "STANDARD", "KubernetesGroups": ["signalbox:trial"]}
    assert [{**one["Properties"], "PrincipalArn": None} for one in entries.values()] == [
        {"ClusterName": name, "PrincipalArn": None, **expected} for name in ("prod-eu", "Test_1")
    ]


def test_control_describes_the_named_clusters_only(otherwise):
    assert resources(otherwise, CONTROL, action="eks:DescribeCluster") == {
        f"arn:<Partition>:eks:<Region>:<AccountId>:cluster/{name}" for name in ("prod-eu", "Test_1")
    }


def test_control_reads_the_named_secrets_only_and_uses_their_keys_through_secrets_manager(otherwise):
    assert resources(otherwise, CONTROL, action="secretsmanager:GetSecretValue") == {SECRET}
    (condition,) = (
        one for one in conditions(otherwise, CONTROL, action="kms:Decrypt") if "secretsmanager" in json.dumps(one)
    )
    assert otherwise.text(condition["StringEquals"]["kms:ViaService"]) == "secretsmanager.<Region>.amazonaws.com"
    assert KEY in resources(otherwise, CONTROL, action="kms:Decrypt")


def test_a_secret_with_the_key_of_aws_needs_no_right_on_a_key():
    stage = templates(capabilities="splitting", kubernetes_clusters=json.dumps({"lab": LAB}))

    assert "secretsmanager" not in json.dumps(conditions(stage, CONTROL, action="kms:Decrypt"))
    assert stage.every(ENTRY) == {}
    assert not resources(stage, CONTROL, action="eks:DescribeCluster")


def test_the_function_split_reaches_no_cluster(otherwise):
    assert not resources(otherwise, SPLIT, action="eks:DescribeCluster")
    assert not resources(otherwise, SPLIT, action="secretsmanager:GetSecretValue")


def test_without_clusters_there_is_no_access(stage):
    assert stage.every(ENTRY) == {}
    assert not resources(stage, CONTROL, action="eks:DescribeCluster")
    assert not resources(stage, CONTROL, action="secretsmanager:GetSecretValue")
    variables = stage.every("AWS::Lambda::Function")["Splitting/Control"]["Properties"]["Environment"]["Variables"]
    assert variables["KUBERNETES_CLUSTERS"] == "{}"


def test_the_function_gets_the_clusters_without_the_keys(otherwise):
    variables = otherwise.every("AWS::Lambda::Function")["Splitting/Control"]["Properties"]["Environment"]["Variables"]

    clusters = json.loads(variables["KUBERNETES_CLUSTERS"])
    assert list(clusters.items()) == [("prod", {"eks": "prod-eu"}), ("lab", LAB), ("test", {"eks": "Test_1"})]


def test_the_largest_setting_fits_into_the_variables_of_the_function(stage):
    variables = stage.every("AWS::Lambda::Function")["Splitting/Control"]["Properties"]["Environment"]["Variables"]

    # The longest of a URL with names of 80 characters, an ARN and others, which the template has as references.
    longest = {name: value if isinstance(value, str) else "x" * 160 for name, value in variables.items()}
    longest |= {"STAGE": "s" * 30, "KEPT_BUCKET": "x" * 63}
    assert len(json.dumps(longest)) + LARGEST_BYTES < VARIABLES_BYTES
