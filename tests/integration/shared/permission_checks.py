"""Identities on the deployed stage, and what each of them may do: each makes every call with its own credentials.

The roles trust the Lambda service alone, so an administrator lets itself in for the time of the test.
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
# What nobody may do and even a test of the administrator must not.
HARMFUL = {"make an access key"}
KEY_ITSELF = "use the key of the queues directly"


class Place(Protocol):
    """What calls are about."""

    @property
    def outputs(self) -> Mapping[str, str]:
        """What the stage says of itself."""
        ...

    @property
    def key(self) -> str:
        """The key of the stage's queues."""
        ...


# What the calls are about is each test's own kind of place.
Call = Callable[[boto3.Session, Any], object]
Argument = Callable[[Any], object]
EVENT = HistoryEvent("by a test", datetime.now(UTC), "none", kind="none", outcome="none")


def calling(service: str, operation: str, **arguments: Argument) -> Call:
    """A call whose arguments are made from the place."""

    def make(session: boto3.Session, place: Any) -> object:
        return getattr(session.client(service), operation)(**{name: of(place) for name, of in arguments.items()})

    return make


def just(value: object) -> Argument:
    return lambda _: value


STAGE_CALLS: dict[str, Call] = {
    "list queues": calling("sqs", "list_queues"),
    "write history": calling(
        "firehose",
        "put_record_batch",
        DeliveryStreamName=lambda p: p.outputs["HistoryStream"],
        Records=just([{"Data": EVENT.to_json().encode()}]),
    ),
    "list history": calling("s3", "list_objects_v2", Bucket=lambda p: p.outputs["HistoryBucket"]),
    "read the client's key": calling(
        "secretsmanager", "get_secret_value", SecretId=lambda p: p.outputs["ClientSecretArn"]
    ),
    KEY_ITSELF: calling("kms", "generate_data_key", KeyId=lambda p: p.key, KeySpec=just("AES_256")),
    "make an access key": calling("iam", "create_access_key", UserName=lambda p: p.outputs["ClientUserName"]),
    "list roles": calling("iam", "list_roles"),
}


def allowed(calls: Mapping[str, Call], session: boto3.Session, place: Place) -> set[str]:
    """Return the calls that pass the check of permissions, whatever becomes of them then."""
    return {what for what, call in calls.items() if _is_allowed(call, session, place)}


def refused_to_administrator(
    calls: Mapping[str, Call], deployment: Deployment, place: Place, *, without: Collection[str]
) -> set[str]:
    """Return what the administrator may not do: refusals of others there have another cause than the identity."""
    harmless = {what: call for what, call in calls.items() if what not in HARMFUL and what not in without}
    return harmless.keys() - allowed(harmless, deployment.session(), place)


def _is_allowed(call: Call, session: boto3.Session, place: Place) -> bool:
    try:
        call(session, place)
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
    """Return the key with which a queue is encrypted."""
    sqs = deployment.session().client("sqs")
    found = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["KmsMasterKeyId"])
    return str(found["Attributes"]["KmsMasterKeyId"])


@contextmanager
def assumed_role(deployment: Deployment, role_arn: str) -> Iterator[boto3.Session]:
    """Return a session with the credentials of a role that trusts the administrator meanwhile."""
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
    """A session with temporary credentials, for the emulator."""

    def __init__(self, endpoint_url: str | None, region: str, key: Mapping[str, str]) -> None:
        super().__init__(key["AccessKeyId"], key["SecretAccessKey"], key["SessionToken"], region_name=region)
        self._endpoint_url = endpoint_url

    def client(self, *arguments: Any, **options: Any) -> Any:
        return super().client(*arguments, **options | {"endpoint_url": self._endpoint_url})


@contextmanager
def user_with_policy(deployment: Deployment, policy_arn: str) -> Iterator[boto3.Session]:
    """Return a session of a user who has one managed policy and nothing else."""
    iam, name = deployment.session().client("iam"), f"person-{secrets.token_hex(4)}"
    iam.create_user(UserName=name)
    iam.attach_user_policy(UserName=name, PolicyArn=policy_arn)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    try:
        yield deployment.session_of(ClientCredentials(key["AccessKeyId"], key["SecretAccessKey"]))
    finally:
        iam.delete_access_key(UserName=name, AccessKeyId=key["AccessKeyId"])
        iam.detach_user_policy(UserName=name, PolicyArn=policy_arn)
        iam.delete_user(UserName=name)
