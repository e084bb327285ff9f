"""Batches of messages and Athena queries need the permissions that AWS requires."""

import json

import pytest
from botocore.exceptions import ClientError

from signalbox.clients.stage_session import LocalSession
from signalbox.local.emulator.patches.batch_permissions import with_aws_permissions

WORK_GROUP = "arn:aws:athena:us-east-1:123456789012:workgroup/lake"


def checked(action: str, resource: str) -> tuple[str, str]:
    """Return the action and the resource that are checked for an action on a resource."""

    def enforce(key, action, service, region, *, resource_arn, service_context):
        assert (key, region, service_context) == ("key", "us-east-1", {"some": "context"})
        return action, resource_arn

    enforced = with_aws_permissions(enforce, lambda: "123456789012", ["primary", "lake"])
    service = action.partition(":")[0]
    return enforced("key", action, service, "us-east-1", resource_arn=resource, service_context={"some": "context"})


@pytest.mark.parametrize(
    ("action", "expected"),
    [("sqs:SendMessageBatch", "sqs:SendMessage"), ("sqs:DeleteQueue", "sqs:DeleteQueue")],
)
def test_a_batch_needs_the_permission_for_one_message(action, expected):
    assert checked(action, "arn:q") == (expected, "arn:q")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("athena:GetQueryExecution", WORK_GROUP),
        ("athena:GetQueryResults", WORK_GROUP),
        ("athena:ListQueryExecutions", "*"),
    ],
)
def test_reading_a_query_needs_the_permission_for_its_workgroup(action, expected):
    assert checked(action, "*") == (action, expected)


@pytest.fixture(scope="module")
def user(running):
    """A session of a user who may send messages to one queue and read the queries of one workgroup."""
    iam = running.session().client("iam")
    allowed = [
        {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "arn:aws:sqs:us-east-1:000000000000:allowed"},
        {
            "Effect": "Allow",
            "Action": "athena:GetQueryExecution",
            "Resource": "arn:aws:athena:us-east-1:000000000000:workgroup/primary",
        },
    ]
    iam.create_user(UserName="limited")
    document = json.dumps({"Version": "2012-10-17", "Statement": allowed})
    iam.put_user_policy(UserName="limited", PolicyName="limited", PolicyDocument=document)
    key = iam.create_access_key(UserName="limited")["AccessKey"]
    return LocalSession(
        running.endpoint_url,
        region="us-east-1",
        access_key_id=key["AccessKeyId"],
        secret_access_key=key["SecretAccessKey"],
    )


@pytest.mark.emulator
@pytest.mark.release
def test_a_user_who_may_send_a_message_may_send_a_batch_to_the_same_queue_alone(running, user):
    queues = {name: running.session().client("sqs").create_queue(QueueName=name) for name in ("allowed", "other")}
    batch = [{"Id": "1", "MessageBody": "one"}]

    sent = user.client("sqs").send_message_batch(QueueUrl=queues["allowed"]["QueueUrl"], Entries=batch)

    assert len(sent["Successful"]) == 1
    with pytest.raises(ClientError, match="AccessDenied"):
        user.client("sqs").send_message_batch(QueueUrl=queues["other"]["QueueUrl"], Entries=batch)


@pytest.mark.emulator
@pytest.mark.release
def test_a_user_who_may_read_a_workgroups_queries_may_look_for_one(user):
    with pytest.raises(ClientError, match="InvalidRequestException"):
        user.client("athena").get_query_execution(QueryExecutionId="00000000-0000-0000-0000-000000000000")
