"""Checks of the permissions of identities on the deployed stage: each identity makes every call.

The roles trust the Lambda service only, so the administrator adds itself to the trust policy during a test.
"""

import json
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

import boto3
from botocore.exceptions import ClientError

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.shared.deployment import Deployment
from signalbox.history.event import HistoryEvent

REFUSALS = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "KMS.AccessDeniedException"}
# Calls that even the test with the administrator's credentials must not make.
HARMFUL = {"make an access key"}
KEY_ITSELF = "use the key of the queues directly"


class Resources(Protocol):
    """The resources that calls use."""

    @property
    def outputs(self) -> Mapping[str, str]:
        """The outputs of the stage's stacks."""
        ...

    @property
    def key(self) -> str:
        """The KMS key of the stage's queues."""
        ...


# The second argument is a test's own class of resources.
Call = Callable[[boto3.Session, Any], object]
Argument = Callable[[Any], object]
EVENT = HistoryEvent("by a test", datetime.now(UTC), "none", kind="none", outcome="none")


def api_call(service: str, operation: str, **arguments: Argument) -> Call:
    """Return a boto3 call whose arguments are functions of the resources."""

    def make(session: boto3.Session, resources: Any) -> object:
        return getattr(session.client(service), operation)(**{name: of(resources) for name, of in arguments.items()})

    return make


def constant(value: object) -> Argument:
    return lambda _: value


STAGE_CALLS: dict[str, Call] = {
    "list queues": api_call("sqs", "list_queues"),
    "write history": api_call(
        "firehose",
        "put_record_batch",
        DeliveryStreamName=lambda p: p.outputs["HistoryStream"],
        Records=constant([{"Data": EVENT.to_json().encode()}]),
    ),
    "list history": api_call("s3", "list_objects_v2", Bucket=lambda p: p.outputs["HistoryBucket"]),
    "read the client's key": api_call(
        "secretsmanager", "get_secret_value", SecretId=lambda p: p.outputs["ClientSecretArn"]
    ),
    KEY_ITSELF: api_call("kms", "generate_data_key", KeyId=lambda p: p.key, KeySpec=constant("AES_256")),
    "make an access key": api_call("iam", "create_access_key", UserName=lambda p: p.outputs["ClientUserName"]),
    "list roles": api_call("iam", "list_roles"),
}


def allowed(calls: Mapping[str, Call], session: boto3.Session, resources: Resources) -> set[str]:
    """Return the calls that pass the permission check, even if they fail for another reason."""
    return {what for what, call in calls.items() if _is_allowed(call, session, resources)}


def refused_to_administrator(
    calls: Mapping[str, Call], deployment: Deployment, resources: Resources, *, without: Collection[str]
) -> set[str]:
    """Return the calls that the administrator is refused; other identities are refused these for the same reason."""
    harmless = {what: call for what, call in calls.items() if what not in HARMFUL and what not in without}
    return harmless.keys() - allowed(harmless, deployment.session(), resources)


def _is_allowed(call: Call, session: boto3.Session, resources: Resources) -> bool:
    try:
        call(session, resources)
    except ClientError as error:
        return error.response["Error"]["Code"] not in REFUSALS
    return True


def functions_of(deployment: Deployment, capability: str) -> dict[str, Any]:
    """Return the functions of a capability by the names of their handlers."""
    pages = deployment.session().client("lambda").get_paginator("list_functions").paginate()
    found = [function for page in pages for function in page["Functions"]]
    package = f"lambdas.{capability}."
    return {one["Handler"].split(".")[-2]: one for one in found if one["Handler"].startswith(package)}


def key_of(deployment: Deployment, queue_url: str) -> str:
    """Return the id of the KMS key that encrypts a queue."""
    sqs = deployment.session().client("sqs")
    found = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["KmsMasterKeyId"])
    return str(found["Attributes"]["KmsMasterKeyId"])


@contextmanager
def assumed_role(deployment: Deployment, role_arn: str) -> Iterator[boto3.Session]:
    """Yield a session with the credentials of a role, which trusts the administrator until the block ends."""
    session = deployment.session()
    iam, sts = session.client("iam"), session.client("sts")
    name = role_arn.rpartition("/")[2]
    trusted = iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]
    administrator = sts.get_caller_identity()["Arn"]
    more = {"Effect": "Allow", "Principal": {"AWS": administrator}, "Action": "sts:AssumeRole"}
    both = trusted | {"Statement": [*trusted["Statement"], more]}
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(both))
    try:
        key = sts.assume_role(RoleArn=role_arn, RoleSessionName="permissions")["Credentials"]
        yield _Session(deployment.endpoint_url, deployment.region, key)
    finally:
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(trusted))


class _Session(boto3.Session):
    """A boto3 session with temporary credentials for the emulator."""

    def __init__(self, endpoint_url: str | None, region: str, key: Mapping[str, str]) -> None:
        super().__init__(key["AccessKeyId"], key["SecretAccessKey"], key["SessionToken"], region_name=region)
        self._endpoint_url = endpoint_url

    def client(self, *arguments: Any, **options: Any) -> Any:
        return super().client(*arguments, **options | {"endpoint_url": self._endpoint_url})


@contextmanager
def user_with_policy(deployment: Deployment, policy_arn: str) -> Iterator[boto3.Session]:
    """Yield a session of a new user with one managed policy and no other permission."""
    iam, name = deployment.session().client("iam"), f"user-{secrets.token_hex(4)}"
    iam.create_user(UserName=name)
    iam.attach_user_policy(UserName=name, PolicyArn=policy_arn)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    try:
        yield deployment.session_of(ClientCredentials(key["AccessKeyId"], key["SecretAccessKey"]))
    finally:
        iam.delete_access_key(UserName=name, AccessKeyId=key["AccessKeyId"])
        iam.detach_user_policy(UserName=name, PolicyArn=policy_arn)
        iam.delete_user(UserName=name)
