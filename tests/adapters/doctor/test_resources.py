"""The doctor's probes for what a stage uses and does not make, with AWS's responses over the wire."""

import boto3
import pytest

from signalbox.aws.doctor.resources import is_catalog_governed, topic, user_rights, visibility_seconds
from signalbox.doctor.findings import CallDenied
from signalbox.doctor.resources import AlarmTopic, DeniedUserActions
from tests.fakes.wire import ACCOUNT, Answer, Wire, data_lake, refusal, result, simulated, wire

__all__ = ["wire"]
TOPIC = f"arn:aws:sns:eu-west-1:{ACCOUNT}:alarms"
QUEUE = f"arn:aws:sqs:eu-central-1:{ACCOUNT}:offers"


@pytest.fixture
def session(wire: Wire) -> boto3.Session:
    return boto3.Session(region_name="eu-central-1")


def test_a_topic_is_looked_up_in_its_own_region(session, wire: Wire):
    assert topic(session, TOPIC) == AlarmTopic()
    assert wire.hosts["GetTopicAttributes"] == "sns.eu-west-1.amazonaws.com"
    key = "<entry><key>KmsMasterKeyId</key><value>alias/aws/sns</value></entry>"
    wire.answers["GetTopicAttributes"] = result("GetTopicAttributes", f"<Attributes>{key}</Attributes>")
    assert topic(session, TOPIC) == AlarmTopic("alias/aws/sns")
    wire.answers["GetTopicAttributes"] = refusal("NotFound", kind="query", status=404)
    assert topic(session, TOPIC) is None
    wire.answers["GetTopicAttributes"] = refusal("AuthorizationError", kind="query", status=403)
    with pytest.raises(CallDenied):
        topic(session, TOPIC)


def test_the_visibility_of_a_queue_is_read(session, wire: Wire):
    wire.answers["GetQueueUrl"] = Answer({"QueueUrl": f"https://sqs.eu-central-1.amazonaws.com/{ACCOUNT}/offers"})
    wire.answers["GetQueueAttributes"] = Answer({"Attributes": {"VisibilityTimeout": "30"}})
    assert visibility_seconds(session, QUEUE) == 30
    wire.answers["GetQueueUrl"] = refusal("QueueDoesNotExist")
    assert visibility_seconds(session, QUEUE) is None


@pytest.mark.parametrize(
    ("databases", "tables", "governed"), [(True, True, False), (False, True, True), (True, False, True)]
)
def test_lake_formation_governs_what_does_not_admit_every_principal_of_iam(
    session, wire: Wire, databases, tables, governed
):
    wire.answers["GetDataLakeSettings"] = data_lake(databases=databases, tables=tables)

    assert is_catalog_governed(session) is governed


def test_the_rights_to_make_users_are_simulated_with_the_organizations_policies(session, wire: Wire):
    assert user_rights(session, ACCOUNT) == DeniedUserActions()
    wire.answers["SimulatePrincipalPolicy"] = simulated("implicitDeny", by_organization=True)
    assert user_rights(session, ACCOUNT) == DeniedUserActions((), ("iam:CreateUser",))
    wire.answers["SimulatePrincipalPolicy"] = simulated("explicitDeny", by_organization=False)
    assert user_rights(session, ACCOUNT) == DeniedUserActions(("iam:CreateUser",), ("iam:CreateUser",))
    wire.answers["SimulatePrincipalPolicy"] = refusal("NoSuchEntity", kind="query", status=404)
    assert user_rights(session, ACCOUNT) is None
