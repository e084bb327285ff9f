"""Endpoints, CAs and tokens of clusters: EKS with signed tokens, others with tokens in Secrets Manager."""

import base64
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from signalbox.aws.splitting.kubernetes.access import ApiAddress
from signalbox.aws.splitting.kubernetes.api import ClusterGone, ClusterRefused, ClusterUnavailable
from signalbox.aws.splitting.kubernetes.client import ClusterClient
from signalbox.aws.splitting.kubernetes.clusters import Clusters
from signalbox.aws.splitting.kubernetes.eks import EksAccess
from signalbox.aws.splitting.kubernetes.service_account import ServiceAccountAccess
from signalbox.aws.splitting.kubernetes.settings import EksSetting, ServiceAccountSetting, parse_clusters
from tests.fakes.clock import MemoryTime

REGION = "us-east-1"
CONNECTION = ApiAddress("https://k8s.example:6443", "a CA")
MINUTE = timedelta(minutes=1)


class Eks:
    """EKS as `DescribeCluster` shows it."""

    def __init__(self, **cluster: object) -> None:
        ca = base64.b64encode(b"a CA").decode()
        self.cluster = {"endpoint": "https://a", "certificateAuthority": {"data": ca}, "status": "ACTIVE"} | cluster
        self.calls: list[str] = []
        self.error: Exception | None = None

    def describe_cluster(self, *, name: str):
        self.calls.append(name)
        if self.error is not None:
            raise self.error
        return {"cluster": self.cluster}


def client_error(code: str, status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": "of AWS"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "DescribeCluster")


@pytest.fixture
def clock() -> MemoryTime:
    return MemoryTime()


def eks_access(eks: object, clock: MemoryTime, signer: object = None) -> EksAccess:
    return EksAccess("prod", "prod-eu", REGION, eks, signer, clock.now)


def test_eks_gives_the_endpoint_and_the_ca(clock):
    eks = Eks()

    assert eks_access(eks, clock).connection() == ApiAddress("https://a", "a CA")
    assert eks.calls == ["prod-eu"]


def test_a_description_is_read_again_after_five_minutes_and_on_demand(clock):
    eks = Eks()
    access = eks_access(eks, clock)

    access.connection()
    clock.moment += 5 * MINUTE - timedelta(seconds=1)
    access.connection()
    assert len(eks.calls) == 1
    clock.moment += timedelta(seconds=1)
    access.connection()
    assert len(eks.calls) == 2
    access.connection(again=True)
    assert len(eks.calls) == 3


def test_a_cluster_that_eks_does_not_know_is_gone(clock):
    eks = Eks()
    eks.error = client_error("ResourceNotFoundException", 404)

    with pytest.raises(
        ClusterGone, match=r"cluster 'prod' \(EKS 'prod-eu' in us-east-1\) does not exist: .*kubernetes_"
    ):
        eks_access(eks, clock).connection()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (client_error("AccessDeniedException", 403), ClusterRefused),
        (client_error("ThrottlingException", 429), ClusterUnavailable),
        (client_error("ServerException", 500), ClusterUnavailable),
        (EndpointConnectionError(endpoint_url="https://eks"), ClusterUnavailable),
    ],
    ids=["denied", "throttled", "failing", "away"],
)
def test_errors_of_eks_name_the_cluster(clock, error, kind):
    eks = Eks()
    eks.error = error

    with pytest.raises(kind, match="cluster 'prod'"):
        eks_access(eks, clock).connection()


def test_a_cluster_that_is_being_created_is_unavailable(clock):
    with pytest.raises(ClusterUnavailable, match="has no endpoint yet: its status is CREATING"):
        eks_access(Eks(endpoint=None, status="CREATING"), clock).connection()


def test_a_ca_that_is_not_base64_is_refused(clock):
    with pytest.raises(ClusterRefused, match="its CA is not base64"):
        eks_access(Eks(certificateAuthority={"data": "a"}), clock).connection()


@pytest.fixture
def session(aws, monkeypatch) -> boto3.Session:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the role")
    return boto3.Session(region_name=REGION)


def test_a_token_is_a_request_for_the_caller_signed_for_one_cluster(session, clock):
    clusters = Clusters({"prod": EksSetting("prod-eu")}, session, clock.now)

    client = clusters.api_of("prod")

    assert isinstance(client, ClusterClient)
    token = client.access.token()
    prefix, _, encoded = token.partition(".")
    assert prefix == "k8s-aws-v1"
    assert "=" not in encoded
    url = urlsplit(base64.urlsafe_b64decode(encoded + "==").decode())
    query = parse_qs(url.query)
    assert (url.scheme, url.netloc, url.path) == ("https", f"sts.{REGION}.amazonaws.com", "/")
    assert (query["Action"], query["Version"]) == (["GetCallerIdentity"], ["2011-06-15"])
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert query["X-Amz-Security-Token"] == ["of the role"]


def test_a_token_is_signed_again_after_ten_minutes_and_on_demand(clock):
    class Signer:
        signed = 0

        def generate_presigned_url(self, *_: object, **__: object) -> str:
            self.signed += 1
            return f"https://sts/{self.signed}"

    access = eks_access(Eks(), clock, Signer())

    first = access.token()
    clock.moment += 10 * MINUTE - timedelta(seconds=1)
    assert access.token() == first
    clock.moment += timedelta(seconds=1)
    second = access.token()
    assert len({first, second, access.token(again=True)}) == 3


def test_a_token_needs_credentials(clock, monkeypatch):
    monkeypatch.setattr(boto3.Session, "get_credentials", lambda self: None)
    clusters = Clusters({"prod": EksSetting("prod-eu")}, boto3.Session(region_name=REGION), clock.now)

    with pytest.raises(ClusterUnavailable, match="no AWS credentials"):
        clusters.api_of("prod")


class Secret:
    """A secret of Secrets Manager, and the access to a cluster by it."""

    def __init__(self, session: boto3.Session, clock: MemoryTime) -> None:
        self.client = session.client("secretsmanager")
        self.arn = self.client.create_secret(Name="token", SecretString="first")["ARN"]
        self.access = ServiceAccountAccess("lab", CONNECTION, self.arn, self.client, clock.now)

    def put(self, text: str) -> None:
        self.client.put_secret_value(SecretId=self.arn, SecretString=text)


@pytest.fixture
def secret(session, clock) -> Secret:
    return Secret(session, clock)


def test_another_cluster_has_the_connection_of_the_setting(secret):
    assert secret.access.connection() == secret.access.connection(again=True) == CONNECTION


@pytest.mark.parametrize("text", ["ey.J.x\n", '{"token": "ey.J.x", "note": 1}'], ids=["text", "json"])
def test_a_secret_is_the_token_or_json_with_it(secret, text):
    secret.put(text)

    assert secret.access.token() == "ey.J.x"


def test_a_token_in_a_secret_is_read_again_after_five_minutes_and_on_demand(secret, clock):
    access = secret.access

    access.token()
    secret.put("second")
    clock.moment += 5 * MINUTE - timedelta(seconds=1)
    assert access.token() == "first"
    clock.moment += timedelta(seconds=1)
    assert access.token() == "second"
    secret.put("third")
    assert access.token(again=True) == "third"


@pytest.mark.parametrize(
    "text",
    ["{}", "{", " ", "two words", "line\nbreak", "bäd"],
    ids=["no key", "no JSON", "empty", "words", "lines", "ü"],
)
def test_a_secret_without_a_token_is_refused_and_not_shown(secret, text):
    secret.put(text)

    with pytest.raises(ClusterRefused) as refused:
        secret.access.token()

    remedy = "holds no token: its text is the token, or JSON with the key `token`"
    assert str(refused.value) == f"cluster 'lab': the secret {secret.arn} {remedy}"


def test_a_secret_that_does_not_exist_is_refused_by_its_name(secret, clock):
    access = ServiceAccountAccess("lab", CONNECTION, secret.arn + "x", secret.client, clock.now)

    with pytest.raises(ClusterRefused, match=f"ResourceNotFoundException at .*'lab': the secret {secret.arn}x"):
        access.token()


def test_no_text_shows_a_token(secret):
    secret.put("my-token")
    secret.access.token()

    assert "my-token" not in repr(secret.access)


def test_the_clusters_of_the_environment_are_in_their_order():
    text = '{"prod": {"eks": "prod-eu"}, "lab": {"endpoint": "https://a", "ca": "PEM", "token_secret": "arn"}}'

    assert list(parse_clusters(text).items()) == [
        ("prod", EksSetting("prod-eu")),
        ("lab", ServiceAccountSetting(ApiAddress("https://a", "PEM"), "arn")),
    ]


def test_each_cluster_has_one_client(session, secret, clock):
    settings = {"lab": ServiceAccountSetting(CONNECTION, secret.arn), "prod": EksSetting("prod-eu")}
    clusters = Clusters(settings, session, clock.now)

    lab, prod = clusters.api_of("lab"), clusters.api_of("prod")

    assert clusters.api_of("lab") is lab
    assert isinstance(lab, ClusterClient)
    assert isinstance(prod, ClusterClient)
    assert (lab.cluster, lab.access.token()) == ("lab", "first")
    assert (prod.cluster, type(prod.access)) == ("prod", EksAccess)


@pytest.mark.parametrize(("settings", "known"), [({}, "none"), ({"a": EksSetting("a"), "b": EksSetting("b")}, "a, b")])
def test_a_cluster_outside_of_the_setting_is_refused(clock, settings, known):
    with pytest.raises(ClusterRefused, match=f"'prod' is not in the setting `kubernetes_clusters` .* has: {known}$"):
        Clusters(settings, boto3.Session(), clock.now).api_of("prod")


def test_the_remedies_name_the_setting_the_secret_and_the_command(secret, clock):
    of_eks, of_lab = eks_access(Eks(), clock).remedies, secret.access.remedies

    assert "access entry" in of_eks.unauthenticated
    assert "authentication mode API" in of_eks.unauthenticated
    assert "'prod-eu'" in of_eks.untrusted
    assert "`ca` of 'lab' in `kubernetes_clusters`" in of_lab.untrusted
    assert secret.arn in of_lab.unauthenticated
    for remedies in (of_eks, of_lab):
        assert "signalbox split kubernetes rbac" in remedies.forbidden
        assert "public" in remedies.unreachable
