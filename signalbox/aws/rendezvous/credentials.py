"""The access key of Snowflake clients: created in IAM, stored in Secrets Manager, public by design."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_iam.client import IAMClient

# The field names of upstream's common/sqscreds.
KEY_ID, SECRET = "aws-access-key-id", "aws-secret-key"
MAXIMUM_KEYS = 2  # IAM's limit per user


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """An access key whose only permissions are to send offers and receive answers."""

    access_key_id: str
    secret_access_key: str = field(repr=False)

    @property
    def sqscreds(self) -> str:
        """The key in the format of the Snowflake client's option `-sqscreds`."""
        pair = {KEY_ID: self.access_key_id, SECRET: self.secret_access_key}
        return base64.b64encode(json.dumps(pair).encode()).decode()

    def document(self) -> dict[str, str]:
        """Return the key as the local stage's file has it."""
        return {
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "sqscreds": self.sqscreds,
        }


def client_credentials(
    session: "boto3.Session", outputs: Mapping[str, str], *, rotate: bool = False
) -> ClientCredentials:
    """Return the stage's client key; create one if there is none or `rotate` is set.

    After a rotation the previous key stays valid until the next one, since clients update slowly.
    """
    iam, secrets = session.client("iam"), session.client("secretsmanager")
    user, secret_arn = outputs["ClientUserName"], outputs["ClientSecretArn"]
    kept = _parsed(secrets.get_secret_value(SecretId=secret_arn)["SecretString"])
    known = [key["AccessKeyId"] for key in iam.list_access_keys(UserName=user)["AccessKeyMetadata"]]
    if kept is not None and kept.access_key_id in known and not rotate:
        return kept
    _make_room(iam, user, known=known, kept=kept)
    key = iam.create_access_key(UserName=user)["AccessKey"]
    made = ClientCredentials(key["AccessKeyId"], key["SecretAccessKey"])
    pair = {KEY_ID: made.access_key_id, SECRET: made.secret_access_key}
    secrets.put_secret_value(SecretId=secret_arn, SecretString=json.dumps(pair))
    return made


def client_key_ids(session: "boto3.Session", outputs: Mapping[str, str]) -> list[str]:
    """Return the ids of the keys of the client's user."""
    listed = session.client("iam").list_access_keys(UserName=outputs["ClientUserName"])["AccessKeyMetadata"]
    return [key["AccessKeyId"] for key in listed]


def revoke_client_credentials(session: "boto3.Session", outputs: Mapping[str, str]) -> int:
    """Delete every key of the client's user and return their number; CloudFormation cannot delete a user with keys."""
    iam, known = session.client("iam"), client_key_ids(session, outputs)
    for key_id in known:
        iam.delete_access_key(UserName=outputs["ClientUserName"], AccessKeyId=key_id)
    return len(known)


def _make_room(iam: "IAMClient", user: str, *, known: list[str], kept: ClientCredentials | None) -> None:
    for key_id in known:
        if len(known) < MAXIMUM_KEYS:
            return
        if kept is None or key_id != kept.access_key_id:
            iam.delete_access_key(UserName=user, AccessKeyId=key_id)


def _parsed(secret: str) -> ClientCredentials | None:
    """Return the key in a secret, or None; the secret of a new stage contains a placeholder."""
    try:
        pair = json.loads(secret)
    except ValueError:
        return None
    if not isinstance(pair, dict) or not {KEY_ID, SECRET} <= pair.keys():
        return None
    return ClientCredentials(pair[KEY_ID], pair[SECRET])
