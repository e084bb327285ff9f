"""The setting `kubernetes_clusters`: accepted forms, and all problems with their places."""

import base64
import json

import pytest

from stacks.settings.clusters import KubernetesClusters
from stacks.settings.config import Config
from stacks.settings.context import LARGEST_BYTES, InvalidConfig, read_config
from tests.adapters.splitting.kubernetes.api_server import Authority

CA = Authority().pem
ACCOUNT = "eu-central-1:123456789012"
SECRET = f"arn:aws:secretsmanager:{ACCOUNT}:secret:k8s/token-AbCdEf"
KEY = f"arn:aws:kms:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
LAB = {"endpoint": "https://k8s.example:6443", "ca": CA, "token_secret": SECRET}


def read(clusters: object) -> KubernetesClusters:
    return read_config({"kubernetes_clusters": clusters}).clusters


def problem(clusters: object, **others: object) -> str:
    with pytest.raises(InvalidConfig) as refused:
        read_config({"kubernetes_clusters": clusters, **others})
    (text,) = refused.value.problems
    return text.removeprefix("kubernetes_clusters ")


def test_the_file_and_the_command_line_give_the_same_clusters():
    clusters = {"prod": {"eks": "prod-eu"}, "lab": LAB | {"token_secret_key": KEY}}

    assert read(clusters) == read(json.dumps(clusters))


def test_clusters_keep_their_order_and_the_function_gets_what_it_needs():
    clusters = read({"prod": {"eks": "prod-eu"}, "lab": LAB | {"token_secret_key": KEY}, "a": {"eks": "A_1"}})

    assert list(json.loads(clusters.variable).items()) == [
        ("prod", {"eks": "prod-eu"}),
        ("lab", LAB),
        ("a", {"eks": "A_1"}),
    ]
    assert clusters.eks == {"prod": "prod-eu", "a": "A_1"}
    assert (clusters.token_secrets, clusters.token_secret_keys) == ((SECRET,), (KEY,))


def test_a_ca_may_be_base64_as_in_a_kubeconfig():
    encoded = base64.b64encode(CA.encode()).decode()

    assert read({"lab": LAB | {"ca": encoded}}) == read({"lab": LAB})


def test_a_ca_may_have_several_certificates():
    assert json.loads(read({"lab": LAB | {"ca": CA + Authority().pem}}).variable)["lab"]["ca"].count("BEGIN") == 2


@pytest.mark.parametrize("nothing", [None, "", "{}", {}])
def test_without_clusters_nothing_is_there(nothing):
    assert read(nothing) == Config().clusters
    assert read(nothing).variable == "{}"


@pytest.mark.parametrize(
    ("clusters", "text"),
    [
        ("prod", "must be a JSON object of names and clusters: Expecting value"),
        ("[]", "must be a JSON object of names and clusters, not '[]'"),
        ("[" * 5000, "must be a JSON object of names and clusters: maximum recursion depth"),
        ('{"a": {"eks": "x"}, "a": {"eks": "y"}}', "must be a JSON object of names and clusters: a: a name is given"),
        (True, "must be a JSON object of names and clusters, not 'True'"),
        ({"Prod.eu": {"eks": "a"}}, "has a cluster 'Prod.eu': a name must match [a-z0-9]"),
        ({"prod": "prod-eu"}, "at 'prod': must be an object, not 'prod-eu'"),
        ({"prod": {}}, "at 'prod': `endpoint`, `ca`, `token_secret` missing"),
        ({"prod": {"eks": "a b"}}, "at 'prod': `eks` must match [0-9A-Za-z][A-Za-z0-9_-]{0,99}, not 'a b'"),
        ({"prod": {"eks": 7}}, "at 'prod': `eks` must be text, not '7'"),
        ({"prod": {"eks": "a", "ca": CA}}, "at 'prod': ca cannot be there: a cluster has `eks`, or `endpoint`, `ca`"),
        ({"lab": LAB | {"endpoint": "http://k8s.example"}}, "at 'lab': `endpoint` must match https://"),
        ({"lab": LAB | {"endpoint": "https://user@k8s.example"}}, "at 'lab': `endpoint` must match https://"),
        ({"lab": LAB | {"endpoint": "https://k8s.example?a=b"}}, "at 'lab': `endpoint` must match https://"),
        ({"lab": LAB | {"ca": "no certificate"}}, "at 'lab': `ca` must be certificates in PEM, or their base64"),
        ({"lab": LAB | {"ca": ""}}, "at 'lab': `ca` must be certificates in PEM, or their base64"),
        ({"lab": LAB | {"ca": "/w=="}}, "at 'lab': `ca` must be certificates in PEM, or their base64"),
        ({"lab": LAB | {"token_secret": "k8s/token"}}, "at 'lab': `token_secret` must match arn:"),
        ({"lab": LAB | {"token_secret_key": "alias/a"}}, "at 'lab': `token_secret_key` must match arn:"),
        ({"a": {"eks": "same"}, "b": {"eks": "same"}}, "names the EKS cluster 'same' twice"),
    ],
)
def test_a_problem_is_named_with_its_place(clusters, text):
    assert problem(clusters).startswith(text)


def test_all_problems_are_named_together():
    text = problem({"A": 1, "lab": {"endpoint": "http://a", "ca": "b", "secret": "c"}})

    assert len(text.split("; ")) == 6


@pytest.mark.parametrize(
    "settings",
    [
        {"kubernetes_clusters": {f"lab-{number}": LAB for number in range(4)}},
        {"kubernetes_clusters": {"lab": LAB}, "splittable_buckets": ",".join(["photos-of-the-day"] * 100)},
    ],
)
def test_more_clusters_and_buckets_than_fit_into_the_variables_of_a_function_are_refused(settings):
    with pytest.raises(InvalidConfig, match=f"at most {LARGEST_BYTES} fit into the variables of a function"):
        read_config(settings)


def test_a_secret_is_in_the_region_of_the_stage():
    assert problem({"lab": LAB}, region="us-east-1").endswith("must be in region 'us-east-1', in which the stage is")
    assert read_config({"kubernetes_clusters": {"lab": LAB}, "region": "eu-central-1"}).clusters.token_secrets
