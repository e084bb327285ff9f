"""The doctor's probes: the facts in AWS's responses, and the meaning of AWS's errors."""

import boto3
import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    SSOTokenLoadError,
    TokenRetrievalError,
)

from signalbox.aws.doctor.account import identity, partition, regions
from signalbox.aws.doctor.bootstrap import AssetsBucket, assets_bucket, bootstrap_version
from signalbox.aws.doctor.calls import call
from signalbox.aws.doctor.clusters import cluster
from signalbox.aws.doctor.quotas import concurrency, iam_users_and_roles, requests_a_second, schedule_groups, tables
from signalbox.aws.doctor.recorder import recorders
from signalbox.aws.doctor.resources import queue, topic_exists
from signalbox.doctor.account import Identity, Region
from signalbox.doctor.clusters import EksCluster
from signalbox.doctor.problems import CallDenied, CallFailed, CredentialsUnusable
from signalbox.doctor.quotas import Concurrency, Places
from signalbox.doctor.recorder import ALL, ALL_BUT, SOME, Recorder
from signalbox.doctor.resources import NamedQueue
from tests.fakes.wire import ACCOUNT, Answer, Wire, encryption, quota, refusal, wire

__all__ = ["wire"]
TOPIC = f"arn:aws:sns:eu-west-1:{ACCOUNT}:alarms"


@pytest.fixture
def session(wire: Wire) -> boto3.Session:
    return boto3.Session(region_name="eu-central-1")


def test_the_identity_is_that_of_the_credentials(session):
    assert identity(session) == Identity(ACCOUNT, f"arn:aws:sts::{ACCOUNT}:assumed-role/Deployer/ann")


def test_a_partition_is_known_without_a_call(session, wire: Wire):
    assert [partition(session, name) for name in ("eu-west-1", "cn-north-1", "narnia")] == ["aws", "aws-cn", None]
    assert wire.asked == []


def test_regions_have_their_status(session):
    assert Region("af-south-1", "not-opted-in") in regions(session)


def test_the_version_of_the_bootstrap_is_a_parameter(session, wire: Wire):
    assert bootstrap_version(session) == 28
    wire.answers["GetParameter"] = refusal("ParameterNotFound")
    assert bootstrap_version(session) is None


def test_the_key_of_the_assets_bucket_is_that_of_its_default_encryption(session, wire: Wire):
    assert assets_bucket(session, account=ACCOUNT, region="eu-central-1") == AssetsBucket(exists=True)
    wire.answers["GetBucketEncryption"] = encryption("aws:kms", "arn:k")
    assert assets_bucket(session, account=ACCOUNT, region="eu-central-1") == AssetsBucket(exists=True, key="arn:k")
    wire.answers["GetBucketEncryption"] = refusal("NoSuchBucket", kind="s3", status=404)
    assert assets_bucket(session, account=ACCOUNT, region="eu-central-1") == AssetsBucket(exists=False)
    wire.answers["GetBucketEncryption"] = refusal("AccessDenied", kind="s3", status=403)
    with pytest.raises(CallDenied):
        assets_bucket(session, account=ACCOUNT, region="eu-central-1")


def test_quotas_are_read_with_their_use(session, wire: Wire):
    assert concurrency(session) == Concurrency(1000, 1000)
    assert requests_a_second(session) == 10_000
    assert iam_users_and_roles(session) == (Places(12, 5000), Places(80, 1000))
    wire.answers["ListTables"] = [
        Answer({"TableNames": ["one"], "LastEvaluatedTableName": "one"}),
        Answer({"TableNames": ["b"]}),
    ]
    assert tables(session) == Places(2, 10_000)
    assert schedule_groups(session) == 1


def test_a_quota_without_a_value_of_the_account_has_awss_default(session, wire: Wire):
    wire.answers["GetServiceQuota"] = refusal("NoSuchResourceException")
    wire.answers["GetAWSDefaultServiceQuota"] = quota(2500)

    assert requests_a_second(session) == 2500


def test_a_denied_quota_names_its_permission(session, wire: Wire):
    wire.answers["GetServiceQuota"] = refusal("AccessDeniedException")

    with pytest.raises(CallDenied) as denied:
        requests_a_second(session)

    assert denied.value.permission == "servicequotas:GetServiceQuota"


GROUPS = {
    "all": {"allSupported": True, "recordingStrategy": {"useOnly": ALL}},
    "before strategies": {"allSupported": True},
    "nothing said": {},
    "some": {"allSupported": False, "resourceTypes": ["AWS::SQS::Queue"], "recordingStrategy": {"useOnly": SOME}},
    "some, before strategies": {"resourceTypes": ["AWS::SQS::Queue"]},
    "all but": {
        "exclusionByResourceTypes": {"resourceTypes": ["AWS::SQS::Queue"]},
        "recordingStrategy": {"useOnly": ALL_BUT},
    },
}


@pytest.mark.parametrize(
    ("group", "strategy", "records"),
    [
        ("all", ALL, True),
        ("before strategies", ALL, True),
        ("nothing said", ALL, True),
        ("some", SOME, True),
        ("some, before strategies", SOME, True),
        ("all but", ALL_BUT, False),
    ],
)
def test_a_recorder_has_its_strategy(session, wire: Wire, group, strategy, records):
    described = {"name": "default", "roleARN": "arn:r", "recordingGroup": GROUPS[group]}
    wire.answers["DescribeConfigurationRecorders"] = Answer({"ConfigurationRecorders": [described]})
    wire.answers["DescribeConfigurationRecorderStatus"] = Answer(
        {"ConfigurationRecordersStatus": [{"name": "default", "recording": True}, {"name": "other"}]}
    )

    (found,) = recorders(session)

    assert (found.strategy, found.records_queues, found.is_recording) == (strategy, records, True)


def test_a_recorder_has_the_frequency_for_queues_and_its_scope(session, wire: Wire):
    override = {"resourceTypes": ["AWS::SQS::Queue"], "recordingFrequency": "DAILY"}
    mode = {
        "recordingFrequency": "CONTINUOUS",
        "recordingModeOverrides": [{"resourceTypes": ["AWS::S3::Bucket"]}, override],
    }
    described = {"name": "aws", "recordingMode": mode, "recordingScope": "INTERNAL"}
    wire.answers["DescribeConfigurationRecorders"] = Answer({"ConfigurationRecorders": [described]})

    assert recorders(session) == [Recorder("aws", "", ALL, frequency="DAILY", is_recording=False, is_paid=False)]


def test_a_queue_has_the_stage_of_its_tag(session, wire: Wire):
    assert queue(session, "offers") is None
    wire.answers["GetQueueUrl"] = Answer({"QueueUrl": "https://q"})
    wire.answers["ListQueueTags"] = Answer({"Tags": {"signalbox:stage": "try"}})
    assert queue(session, "offers") == NamedQueue("offers", "try")
    wire.answers["ListQueueTags"] = Answer({})
    assert queue(session, "offers") == NamedQueue("offers", None)


def test_a_queue_of_another_account_is_not_asked_for_its_tags(session, wire: Wire):
    wire.answers["GetQueueUrl"] = Answer({"QueueUrl": "https://q"})

    assert queue(session, "offers", owner="999999999999") == NamedQueue("offers", None)
    assert wire.asked == ["GetQueueUrl"]


def test_a_topic_is_looked_up_in_its_own_region(session, wire: Wire):
    assert topic_exists(session, TOPIC)
    assert wire.hosts["GetTopicAttributes"] == "sns.eu-west-1.amazonaws.com"
    wire.answers["GetTopicAttributes"] = refusal("NotFound", kind="query", status=404)
    assert not topic_exists(session, TOPIC)
    wire.answers["GetTopicAttributes"] = refusal("AuthorizationError", kind="query", status=403)
    with pytest.raises(CallDenied):
        topic_exists(session, TOPIC)


def test_a_cluster_is_described(session, wire: Wire):
    network = {"endpointPublicAccess": True, "publicAccessCidrs": ["0.0.0.0/0"]}
    described = {"resourcesVpcConfig": network, "accessConfig": {"authenticationMode": "API"}}
    wire.answers["DescribeCluster"] = Answer({"cluster": described})
    assert cluster(session, "prod-eu") == EksCluster("API", is_public=True, addresses=("0.0.0.0/0",))
    wire.answers["DescribeCluster"] = Answer({"cluster": {"resourcesVpcConfig": {"endpointPublicAccess": False}}})
    assert cluster(session, "prod-eu") == EksCluster("CONFIG_MAP", is_public=False, addresses=())
    wire.answers["DescribeCluster"] = refusal("ResourceNotFoundException", status=404)
    assert cluster(session, "prod-eu") is None
    wire.answers["DescribeCluster"] = refusal("AccessDeniedException", status=403)
    with pytest.raises(CallDenied, match="eks:DescribeCluster"):
        cluster(session, "prod-eu")


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "TheCall")


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (refused("AccessDeniedException"), CallDenied),
        (refused("ExpiredToken"), CredentialsUnusable),
        (refused("InvalidClientTokenId"), CredentialsUnusable),
        (refused("RequestTimeTooSkewed"), CredentialsUnusable),
        (refused("ThrottlingException"), CallFailed),
        (NoCredentialsError(), CredentialsUnusable),
        (PartialCredentialsError(provider="env", cred_var="key"), CredentialsUnusable),
        (SSOTokenLoadError(error_msg="no"), CredentialsUnusable),
        (TokenRetrievalError(provider="sso", error_msg="no"), CredentialsUnusable),
        (EndpointConnectionError(endpoint_url="https://x"), CallFailed),
    ],
    ids=lambda value: value.__class__.__name__ if isinstance(value, Exception) else "",
)
def test_each_error_has_its_meaning(error, problem):
    with pytest.raises(problem), call("the:Permission"):
        raise error
