"""Probes of the doctor for what a stage uses and does not make: a topic, a queue, the catalog's rights, IAM users."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox.aws.doctor.probes import PATIENCE, call
from signalbox.doctor.resources import USER_ACTIONS, AlarmTopic, DeniedUserActions

if TYPE_CHECKING:
    import boto3

MISSING_TOPIC = ("NotFound", "NotFoundException")
ALLOWED, BY_IAM = "allowed", "IAM_ALLOWED_PRINCIPALS"
# The name of the role that CloudFormation takes, of a bootstrap without a qualifier of its own.
CDK_ROLE = "cdk-hnb659fds-cfn-exec-role-{account}-{region}"


def topic(session: "boto3.Session", arn: str) -> AlarmTopic | None:
    """Return an SNS topic, or None if it does not exist. Raises the errors of `call`."""
    with call("sns:GetTopicAttributes"):
        sns = session.client("sns", region_name=arn.split(":")[3], config=PATIENCE)
        try:
            found = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
        except ClientError as error:
            if error.response["Error"]["Code"] in MISSING_TOPIC:
                return None
            raise
    return AlarmTopic(found.get("KmsMasterKeyId", ""))


def visibility_seconds(session: "boto3.Session", queue_arn: str) -> int | None:
    """Return a queue's visibility time-out, or None if it does not exist. Raises the errors of `call`."""
    *_, account, name = queue_arn.split(":")
    sqs = session.client("sqs", config=PATIENCE)
    with call("sqs:GetQueueUrl and sqs:GetQueueAttributes"):
        try:
            url = sqs.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
            found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
        except sqs.exceptions.QueueDoesNotExist:
            return None
    return int(found["Attributes"]["VisibilityTimeout"])


def is_catalog_governed(session: "boto3.Session") -> bool:
    """Return whether Lake Formation governs new databases or tables. Raises the errors of `call`."""
    with call("lakeformation:GetDataLakeSettings"):
        found = session.client("lakeformation", config=PATIENCE).get_data_lake_settings()["DataLakeSettings"]
    defaults = (found.get("CreateDatabaseDefaultPermissions", ()), found.get("CreateTableDefaultPermissions", ()))
    return not all(any(one["Principal"]["DataLakePrincipalIdentifier"] == BY_IAM for one in each) for each in defaults)


def user_rights(session: "boto3.Session", account: str) -> DeniedUserActions | None:
    """Return the rights of the CDK's role to make users, or None if there is no such role. Raises the errors of `call`.

    The simulation covers the organization's policies: its answers have an `OrganizationsDecisionDetail`.
    """
    iam = session.client("iam", config=PATIENCE)
    role = CDK_ROLE.format(account=account, region=session.region_name)
    with call("iam:SimulatePrincipalPolicy"):
        try:
            found = iam.simulate_principal_policy(
                PolicySourceArn=f"arn:aws:iam::{account}:role/{role}", ActionNames=list(USER_ACTIONS)
            )["EvaluationResults"]
        except iam.exceptions.NoSuchEntityException:
            return None
    refused = [one for one in found if one["EvalDecision"] != ALLOWED]
    by_organization = tuple(
        one["EvalActionName"]
        for one in refused
        if not one.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True)
    )
    return DeniedUserActions(by_organization, tuple(one["EvalActionName"] for one in refused))
