"""The account's quotas, and how much of them is used."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox.aws.doctor.calls import PATIENCE, call
from signalbox.doctor.quotas import REQUESTS_QUOTA, TABLES_QUOTA, Concurrency, Places

if TYPE_CHECKING:
    import boto3


def concurrency(session: "boto3.Session") -> Concurrency:
    """Return Lambda's concurrent executions. Raises the errors of `call`."""
    with call("lambda:GetAccountSettings"):
        limit = session.client("lambda", config=PATIENCE).get_account_settings()["AccountLimit"]
    return Concurrency(limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"])


def requests_a_second(session: "boto3.Session") -> float:
    """Return API Gateway's requests a second for the account and region. Raises the errors of `call`."""
    return _quota(session, "apigateway", REQUESTS_QUOTA)


def iam_users_and_roles(session: "boto3.Session") -> tuple[Places, Places]:
    """Return the places for users and for roles. Raises the errors of `call`."""
    with call("iam:GetAccountSummary"):
        found = session.client("iam", config=PATIENCE).get_account_summary()["SummaryMap"]
    return Places(found["Users"], found["UsersQuota"]), Places(found["Roles"], found["RolesQuota"])


def tables(session: "boto3.Session") -> Places:
    """Return the places for DynamoDB tables. Raises the errors of `call`."""
    quota = _quota(session, "dynamodb", TABLES_QUOTA)
    with call("dynamodb:ListTables"):
        pages = session.client("dynamodb", config=PATIENCE).get_paginator("list_tables").paginate()
        used = sum(len(page["TableNames"]) for page in pages)
    return Places(used, int(quota))


def schedule_groups(session: "boto3.Session") -> int:
    """Return the number of groups of EventBridge Scheduler. Raises the errors of `call`."""
    with call("scheduler:ListScheduleGroups"):
        pages = session.client("scheduler", config=PATIENCE).get_paginator("list_schedule_groups").paginate()
        return sum(len(page["ScheduleGroups"]) for page in pages)


def _quota(session: "boto3.Session", service: str, code: str) -> float:
    client = session.client("service-quotas", config=PATIENCE)
    names = {"ServiceCode": service, "QuotaCode": code}
    with call("servicequotas:GetServiceQuota"):
        try:
            return float(client.get_service_quota(**names)["Quota"]["Value"])
        except ClientError as error:
            # An account that never changed the quota may have no value of its own.
            if error.response["Error"]["Code"] != "NoSuchResourceException":
                raise
    with call("servicequotas:GetAWSDefaultServiceQuota"):
        return float(client.get_aws_default_service_quota(**names)["Quota"]["Value"])
