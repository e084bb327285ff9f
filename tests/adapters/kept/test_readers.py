"""Readers of kept messages, by the ids with which SQS names senders."""

import json

import boto3
import pytest

from signalbox.aws.kept.readers import IamReaders, UnknownReader
from signalbox.kept.settings import principal_of
from tests.fakes.aws import aws  # noqa: F401 - a fixture

POLICY = json.dumps({"Version": "2012-10-17", "Statement": []})


@pytest.fixture
def readers(aws: None) -> IamReaders:  # noqa: F811
    return IamReaders(boto3.client("iam"), boto3.client("sts"))


def test_users_and_roles_are_found_by_name_and_arn(readers):
    user = readers.iam.create_user(UserName="ann")["User"]
    role = readers.iam.create_role(RoleName="dev", Path="/team/", AssumeRolePolicyDocument=POLICY)["Role"]

    for text in ("ann", "user/ann", user["Arn"]):
        assert readers.find(text) == (user["UserId"], "user/ann")
    for text in ("dev", "role/dev", role["Arn"]):
        assert readers.find(text) == (role["RoleId"], "role/dev")
    assert readers.find("AROAIT2UOQQY3AUEKVGXU") == ("AROAIT2UOQQY3AUEKVGXU", "AROAIT2UOQQY3AUEKVGXU")


@pytest.mark.parametrize("text", ["who", "user/who", "role/who", "group/ann", ""])
def test_others_are_refused(readers, text):
    with pytest.raises(UnknownReader, match="is no IAM user or role"):
        readers.find(text or "nobody")


def test_the_caller_has_the_id_of_the_sender(readers):
    user_id, name = readers.caller()

    assert user_id == boto3.client("sts").get_caller_identity()["UserId"]
    assert ":" not in user_id
    assert name


@pytest.mark.parametrize(
    ("sender_id", "principal"),
    [
        ("AIDAANN", "AIDAANN"),
        ("AROADEV:laptop", "AROADEV"),
        ("123456789012", "123456789012"),
        ("123456789012:guest", "123456789012:guest"),
        ("", ""),
    ],
    ids=["user", "role", "account", "federated user", "nobody"],
)
def test_a_federated_user_is_not_the_account(sender_id, principal):
    assert principal_of(sender_id) == principal
