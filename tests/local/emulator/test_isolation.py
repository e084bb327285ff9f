"""The emulator takes nothing from its user's environment, and serves nothing without a valid signature."""

import socket
import sys
import urllib.error
import urllib.request

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from signalbox.clients.stage_session import LocalSession
from signalbox.local.emulator import program
from signalbox.local.processes import processes_naming
from signalbox.local.stage_folder import StageFolder
from tests.local.emulator.functions import invoke, make_function

SHOW_ENVIRONMENT = "import os\ndef handler(event, context):\n    return dict(os.environ)\n"


def test_the_emulator_inherits_no_variable_of_its_user(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "theirs")
    monkeypatch.setenv("GITHUB_TOKEN", "theirs")

    environment = program.environment(StageFolder(tmp_path), port=4566, region="us-east-1")

    assert not {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "USER"} & environment.keys()
    assert environment["BIND_HOST"] == "127.0.0.1"
    assert environment["AUTH"] == "true"


@pytest.mark.emulator
def test_no_key_is_in_a_command_line_or_in_the_log(emulator_folder, running):
    key = running.administrator

    assert processes_naming(key.access_key_id) == processes_naming(key.secret_access_key) == []
    assert key.secret_access_key not in emulator_folder.log.read_text()


@pytest.mark.emulator
def test_the_administrators_signature_is_checked(running):
    key_id = running.administrator.access_key_id
    session = LocalSession(running.endpoint_url, region="us-east-1", access_key_id=key_id, secret_access_key="wrong")

    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        session.client("s3").list_buckets()


@pytest.mark.emulator
def test_s3_refuses_requests_without_a_signature(running):
    s3 = boto3.client(
        "s3", endpoint_url=running.endpoint_url, region_name="us-east-1", config=Config(signature_version=UNSIGNED)
    )

    with pytest.raises(ClientError, match="AccessDenied"):
        s3.list_buckets()


@pytest.mark.emulator
def test_the_emulator_cannot_be_reset_without_a_signature(running):
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(f"{running.endpoint_url}/_ministack/reset", method="POST"))


@pytest.mark.emulator
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a second loopback address to try")
def test_the_emulator_listens_on_one_loopback_address_only(running):
    with socket.socket() as elsewhere:
        elsewhere.bind(("127.0.0.2", running.port))  # would be taken by a listener on every interface


@pytest.mark.emulator
def test_a_function_has_its_own_roles_credentials_and_no_others(running):
    make_function(running.session(), "show", SHOW_ENVIRONMENT)
    environment = invoke(running.session(), "show")["payload"]

    caller = boto3.client(
        "sts",
        endpoint_url=running.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=environment["AWS_SESSION_TOKEN"],
    ).get_caller_identity()
    assert caller["Arn"] == "arn:aws:sts::000000000000:assumed-role/show-role/show"
    assert running.administrator.secret_access_key not in environment.values()
    assert "THEIR_SECRET" not in environment
