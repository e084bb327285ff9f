"""The access key of clients: creation, rotation and revocation."""

import base64
import json

import boto3
import pytest

from signalbox.aws.rendezvous.credentials import (
    ClientCredentials,
    client_credentials,
    client_key_ids,
    revoke_client_credentials,
)


@pytest.fixture
def outputs(aws) -> dict[str, str]:
    boto3.client("iam").create_user(UserName="client")
    return {"ClientUserName": "client"}


def keys() -> list[str]:
    return [key["AccessKeyId"] for key in boto3.client("iam").list_access_keys(UserName="client")["AccessKeyMetadata"]]


def test_repeated_calls_return_the_same_key(outputs) -> None:
    first = client_credentials(boto3.Session(), outputs)

    assert client_credentials(boto3.Session(), outputs) == first
    assert keys() == [first.access_key_id]


def test_after_a_rotation_the_previous_key_stays_valid_until_the_next(outputs) -> None:
    first = client_credentials(boto3.Session(), outputs)
    second, third = (client_credentials(boto3.Session(), outputs, rotate=True) for _ in range(2))

    assert keys() == [second.access_key_id, third.access_key_id]
    assert first.access_key_id not in keys()
    assert client_credentials(boto3.Session(), outputs) == third


def test_revoked_keys_are_deleted_and_a_new_one_can_be_created(outputs) -> None:
    first = client_credentials(boto3.Session(), outputs)

    assert revoke_client_credentials(boto3.Session(), outputs) == 1
    assert keys() == []
    assert boto3.client("ssm").describe_parameters()["Parameters"] == []
    assert client_credentials(boto3.Session(), outputs) != first


def test_the_ids_of_the_keys_are_listed(outputs) -> None:
    assert client_key_ids(boto3.Session(), outputs) == []

    key = client_credentials(boto3.Session(), outputs)

    assert client_key_ids(boto3.Session(), outputs) == [key.access_key_id]


def test_local_json_has_the_key_with_its_encoded_form() -> None:
    key = ClientCredentials("AKIA1", "hidden")

    assert key.document() == {
        "access_key_id": "AKIA1",
        "secret_access_key": "hidden",
        "sqscreds": key.sqscreds,
    }


def test_a_key_that_was_deleted_is_replaced(outputs) -> None:
    first = client_credentials(boto3.Session(), outputs)
    boto3.client("iam").delete_access_key(UserName="client", AccessKeyId=first.access_key_id)

    assert client_credentials(boto3.Session(), outputs).access_key_id != first.access_key_id


def test_a_key_that_is_not_in_the_parameter_is_deleted_at_the_limit(outputs) -> None:
    for _ in range(2):
        boto3.client("iam").create_access_key(UserName="client")

    made = client_credentials(boto3.Session(), outputs)

    assert keys() == [made.access_key_id]


def test_the_key_is_stored_encrypted(outputs) -> None:
    key = client_credentials(boto3.Session(), outputs)

    (found,) = boto3.client("ssm").describe_parameters()["Parameters"]
    assert (found["Name"], found["Type"], found["Tier"]) == ("/signalbox/client/key", "SecureString", "Standard")
    assert key.secret_access_key not in str(found)


def test_sqscreds_have_the_format_of_upstreams_client() -> None:
    """Source: upstream's common/sqscreds/lib."""
    credentials = ClientCredentials("AKIA", "secret")

    assert json.loads(base64.b64decode(credentials.sqscreds)) == {
        "aws-access-key-id": "AKIA",
        "aws-secret-key": "secret",
    }


def test_the_secret_is_not_in_the_repr() -> None:
    assert "secret!" not in repr(ClientCredentials("AKIA", "secret!"))
