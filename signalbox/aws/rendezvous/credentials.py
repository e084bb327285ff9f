"""The access key of Snowflake clients: created in IAM, stored in a parameter of SSM, public by design."""

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_iam.client import IAMClient
    from mypy_boto3_ssm.client import SSMClient

# The field names of upstream's common/sqscreds.
KEY_ID, SECRET = "aws-access-key-id", "aws-secret-key"
MAXIMUM_KEYS = 2  # IAM's limit per user


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """An access key whose only permissions are to send offers and receive answers."""

    access_key_id: str
    secret_access_key: str = field(repr=False)

    @property
    def pair(self) -> str:
        """The key as upstream's common/sqscreds writes it."""
        return json.dumps({KEY_ID: self.access_key_id, SECRET: self.secret_access_key})

    @property
    def sqscreds(self) -> str:
        """The key in the format of the Snowflake client's option `-sqscreds`."""
        return base64.b64encode(self.pair.encode()).decode()

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
    iam, parameters, user = session.client("iam"), session.client("ssm"), outputs["ClientUserName"]
    kept = _kept(parameters, user)
    known = client_key_ids(session, outputs)
    if kept is not None and kept.access_key_id in known and not rotate:
        return kept
    _make_room(iam, user, known=known, kept=kept)
    key = iam.create_access_key(UserName=user)["AccessKey"]
    made = ClientCredentials(key["AccessKeyId"], key["SecretAccessKey"])
    parameters.put_parameter(Name=parameter_of(user), Value=made.pair, Type="SecureString", Overwrite=True)
    return made


def client_key_ids(session: "boto3.Session", outputs: Mapping[str, str]) -> list[str]:
    """Return the ids of the keys of the client's user."""
    listed = session.client("iam").list_access_keys(UserName=outputs["ClientUserName"])["AccessKeyMetadata"]
    return [key["AccessKeyId"] for key in listed]


def revoke_client_credentials(session: "boto3.Session", outputs: Mapping[str, str]) -> int:
    """Delete every key of the client's user and return their number; CloudFormation cannot delete a user with keys."""
    known = client_key_ids(session, outputs)
    for key_id in known:
        delete_client_key(session, outputs["ClientUserName"], key_id)
    return len(known)


def delete_client_key(session: "boto3.Session", user: str, key_id: str) -> None:
    """Delete a key of the client's user, and the parameter of the newest one. Repeating it is harmless."""
    iam, parameters = session.client("iam"), session.client("ssm")
    with suppress(iam.exceptions.NoSuchEntityException):
        iam.delete_access_key(UserName=user, AccessKeyId=key_id)
    parameters.delete_parameters(Names=[parameter_of(user)])


def parameter_of(user: str) -> str:
    """Return the name of the parameter with the newest key of a client's user."""
    return f"/signalbox/{user}/key"


def _make_room(iam: "IAMClient", user: str, *, known: list[str], kept: ClientCredentials | None) -> None:
    for key_id in known:
        if len(known) < MAXIMUM_KEYS:
            return
        if kept is None or key_id != kept.access_key_id:
            iam.delete_access_key(UserName=user, AccessKeyId=key_id)


def _kept(parameters: "SSMClient", user: str) -> ClientCredentials | None:
    """Return the key in the parameter, which a new stage does not have."""
    try:
        found = parameters.get_parameter(Name=parameter_of(user), WithDecryption=True)
    except parameters.exceptions.ParameterNotFound:
        return None
    pair = json.loads(found["Parameter"]["Value"])
    return ClientCredentials(pair[KEY_ID], pair[SECRET])
