"""The emulator's life, and that its enforcement means something."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from signalbox.errors import RejectedError
from signalbox.local.emulator import lifecycle
from signalbox.local.processes import is_alive, processes_naming
from signalbox.local.session import LocalSession
from signalbox.local.state import State

SHOW_ENVIRONMENT = "import os\ndef handler(event, context):\n    return dict(os.environ)\n"
ANSWER_AS_ASKED = (
    "def handler(event, context):\n"
    "    return {'statusCode': int(event['queryStringParameters']['status']), 'body': 'why'}\n"
)
TRUSTED = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "*"}]}


def test_a_taken_port_is_named_together_with_the_way_out(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(RejectedError, match=rf"port {port} of 127.0.0.1 is taken .*--port {port + 1}"):
            lifecycle.start(State(tmp_path), port=port)


def test_the_emulator_inherits_nothing_of_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "theirs")
    monkeypatch.setenv("GITHUB_TOKEN", "theirs")

    environment = lifecycle.environment(State(tmp_path), port=4566, region="us-east-1")

    assert not {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "USER"} & environment.keys()
    assert environment["BIND_HOST"] == "127.0.0.1"
    assert environment["AUTH"] == "true"


def test_nothing_runs_where_nothing_was_started(tmp_path):
    state = State(tmp_path)

    assert lifecycle.running(state) is None
    assert lifecycle.stop(state) is False


def test_a_stale_lock_file_is_nobody(tmp_path):
    state = State(tmp_path)
    state.emulator.mkdir(parents=True)
    state.lock.write_text(str(os.getpid()))

    assert lifecycle.process_id(state) is None


@pytest.mark.emulator
def test_a_started_emulator_is_found_again(stage_state, running):
    assert lifecycle.running(stage_state) == running


@pytest.mark.emulator
def test_files_with_keys_are_the_owners_alone(stage_state, running):
    assert stage_state.running.stat().st_mode & 0o777 == 0o600


@pytest.mark.emulator
def test_no_key_stands_in_a_command_line_or_in_the_log(stage_state, running):
    key = running.administrator

    assert processes_naming(key.access_key_id) == processes_naming(key.secret_access_key) == []
    assert key.secret_access_key not in stage_state.log.read_text()


@pytest.mark.emulator
@pytest.mark.parametrize("key_id", ["test", "000000000000", "111122223333"])
@pytest.mark.parametrize(
    ("service", "operation"), [("s3", "list_buckets"), ("sqs", "list_queues"), ("iam", "list_users")]
)
def test_the_emulators_well_known_keys_are_nobody_here(running, key_id, service, operation):
    session = LocalSession(running.endpoint_url, region="us-east-1", access_key_id=key_id, secret_access_key="test")

    with pytest.raises(ClientError, match=r"InvalidAccessKeyId|InvalidClientTokenId"):
        getattr(session.client(service), operation)()


@pytest.mark.emulator
def test_the_administrators_signature_is_checked(running):
    key_id = running.administrator.access_key_id
    session = LocalSession(running.endpoint_url, region="us-east-1", access_key_id=key_id, secret_access_key="wrong")

    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        session.client("s3").list_buckets()


@pytest.mark.emulator
def test_storage_answers_nobody_without_a_signature(running):
    s3 = boto3.client(
        "s3", endpoint_url=running.endpoint_url, region_name="us-east-1", config=Config(signature_version=UNSIGNED)
    )

    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        s3.list_buckets()


@pytest.mark.emulator
def test_nobody_can_reset_the_emulator_without_a_signature(running):
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(f"{running.endpoint_url}/_ministack/reset", method="POST"))


@pytest.mark.emulator
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a second loopback address to try")
def test_it_listens_on_loopback_only(running):
    with socket.socket() as elsewhere:
        elsewhere.bind(("127.0.0.2", running.port))  # would be taken by a listener on every interface


@pytest.mark.emulator
def test_a_function_has_its_own_roles_credentials_and_nobody_elses(running):
    environment = _environment_of_a_function(running)

    who = boto3.client(
        "sts",
        endpoint_url=running.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=environment["AWS_SESSION_TOKEN"],
    ).get_caller_identity()
    assert who["Arn"] == "arn:aws:sts::000000000000:assumed-role/show-role/show"
    assert running.administrator.secret_access_key not in environment.values()
    assert "THEIR_SECRET" not in environment


def _environment_of_a_function(running):
    session = running.session()
    _make_function(session, "show", SHOW_ENVIRONMENT)
    return json.load(session.client("lambda").invoke(FunctionName="show")["Payload"])


def _make_function(session, name, program):
    """Make a function, and return its ARN."""
    role = session.client("iam").create_role(RoleName=f"{name}-role", AssumeRolePolicyDocument=json.dumps(TRUSTED))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as code:
        code.writestr(f"{name}.py", program)
    return session.client("lambda").create_function(
        FunctionName=name,
        Runtime=f"python{sys.version_info.major}.{sys.version_info.minor}",
        Role=role["Role"]["Arn"],
        Handler=f"{name}.handler",
        Code={"ZipFile": archive.getvalue()},
    )["FunctionArn"]


@pytest.mark.emulator
def test_a_websocket_is_refused_by_the_status_that_its_function_answers(running):
    """As AWS has it: "Set up a $connect route that requires a WebSocket subprotocol" in its developer guide."""
    url = _make_websocket(running.session(), "answer", ANSWER_AS_ASKED).replace("http:", "ws:")

    with connect(f"{url}?status=200"):
        pass
    with pytest.raises(InvalidStatus) as refused, connect(f"{url}?status=429"):
        pass

    assert (refused.value.response.status_code, refused.value.response.body) == (429, b"")


def _make_websocket(session, name, program):
    """Make a WebSocket API whose connections a function lets begin, or not; return its URL."""
    function, api = _make_function(session, name, program), session.client("apigatewayv2")
    made = api.create_api(Name=name, ProtocolType="WEBSOCKET", RouteSelectionExpression="\\$default")["ApiId"]
    uri = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{function}/invocations"
    integration = api.create_integration(ApiId=made, IntegrationType="AWS_PROXY", IntegrationUri=uri)["IntegrationId"]
    api.create_route(ApiId=made, RouteKey="$connect", Target=f"integrations/{integration}")
    api.create_stage(ApiId=made, StageName="live", AutoDeploy=True)
    return f"{api.meta.endpoint_url}/_aws/execute-api/{made}/live"


@pytest.mark.emulator
def test_a_killed_emulator_is_noticed_and_its_orphans_are_ended(tmp_path):
    state = State(tmp_path)
    lifecycle.start(state, port=0)
    leader = lifecycle.process_id(state)
    command = [sys.executable, "-c", "print('here', flush=True); input()", f"{state.temporary}/worker"]
    orphan = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    orphan.stdout.readline()

    os.kill(leader, signal.SIGKILL)
    _wait_until(lambda: not is_alive(leader))

    assert lifecycle.running(state) is None
    assert lifecycle.stop(state) is True
    assert not is_alive(orphan.pid)
    assert not state.running.exists()


@pytest.mark.emulator
def test_an_emulator_with_a_lifeline_ends_when_nobody_holds_it(tmp_path):
    state = State(tmp_path)
    lifeline, held = os.pipe()
    lifecycle.start(state, port=0, lifeline=lifeline)
    leader = lifecycle.process_id(state)

    os.close(held)

    _wait_until(lambda: not is_alive(leader))
    os.close(lifeline)
    lifecycle.stop(state)


def _wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
