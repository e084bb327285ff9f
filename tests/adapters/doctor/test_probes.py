"""The doctor's probes: the facts in AWS's responses, and the meaning of AWS's errors."""

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from signalbox.aws.doctor.probes import call, concurrency, identity, partition, recorders
from signalbox.doctor.findings import CallDenied, CallFailed
from signalbox.doctor.rules import ALL, ALL_BUT, SOME, CallerIdentity, Concurrency, Recorder
from tests.fakes.wire import ACCOUNT, Answer, Wire, wire

__all__ = ["wire"]


@pytest.fixture
def session(wire: Wire) -> boto3.Session:
    return boto3.Session(region_name="eu-central-1")


def test_the_identity_is_that_of_the_credentials(session):
    assert identity(session) == CallerIdentity(ACCOUNT, f"arn:aws:sts::{ACCOUNT}:assumed-role/Deployer/ann")


def test_a_partition_is_known_without_a_call(session, wire: Wire):
    assert [partition(session, name) for name in ("eu-west-1", "cn-north-1", "narnia")] == ["aws", "aws-cn", None]
    assert wire.asked == []


def test_the_concurrency_of_the_account_has_its_unreserved_part(session):
    assert concurrency(session) == Concurrency(1000, 1000)


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


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "TheCall")


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (refused("AccessDeniedException"), CallDenied),
        (refused("ThrottlingException"), CallFailed),
        (EndpointConnectionError(endpoint_url="https://x"), CallFailed),
    ],
    ids=lambda value: value.__class__.__name__ if isinstance(value, Exception) else "",
)
def test_each_error_has_its_meaning(error, problem):
    with pytest.raises(problem), call("the:Permission"):
        raise error
