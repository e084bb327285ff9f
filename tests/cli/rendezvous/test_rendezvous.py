"""The commands `signalbox rendezvous` against a stage in moto."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.cli.main import app
from signalbox.cli.rendezvous.commands import session_description
from signalbox.clients.rendezvous.client import BrokerRefused
from signalbox.clients.rendezvous.simulator import sample_offer
from signalbox.errors import RejectedError
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import match_response

ACCOUNT = "123456789012"
SDP = "v=0\r\na=candidate:1 1 udp 1 192.0.2.1 1 typ host\r\n"


class Broker(BaseHTTPRequestHandler):
    """A broker with one client for each proxy that accepts its answer."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        offer = match_response(
            sample_offer("seed"), nat=Nat.UNRESTRICTED, next_poll_milliseconds=1, relay_url="wss://bridge.example/"
        )
        self.send_response(200)
        self.end_headers()
        self.wfile.write((offer if self.path == "/proxy" else '{"Status":"success"}').encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def broker_url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Broker)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, broker_url: str) -> Iterator[dict[str, str]]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield _deployed(broker_url)


def _deployed(broker_url: str) -> dict[str, str]:
    boto3.client("iam").create_user(UserName="client")
    boto3.resource("dynamodb").create_table(
        TableName="Rendezvous",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    )
    outputs = {
        "BrokerQueueArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:snowflake-broker",
        "BrokerQueueUrl": boto3.client("sqs").create_queue(QueueName="snowflake-broker")["QueueUrl"],
        "ClientQueuePrefix": "snowflake-client-",
        "ClientUserName": "client",
        "ClientSecretArn": boto3.client("secretsmanager").create_secret(Name="client", SecretString="none")["ARN"],
        "RendezvousTable": "Rendezvous",
        "RendezvousUrl": broker_url,
    }
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    boto3.client("cloudformation").create_stack(StackName="signalbox", TemplateBody=json.dumps(template))
    return outputs


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["rendezvous", *arguments, "--aws"], catch_exceptions=False)


def test_credentials_have_the_format_of_upstreams_client(stage) -> None:
    result = run("credentials", "--json")

    shown = json.loads(result.output)
    assert shown["sqsqueue"] == f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/snowflake-broker"
    assert set(json.loads(base64.b64decode(shown["sqscreds"]))) == {"aws-access-key-id", "aws-secret-key"}
    assert shown["arguments"] == f"-sqsqueue {shown['sqsqueue']} -sqscreds {shown['sqscreds']}"
    assert "environment" not in shown


def test_credentials_do_not_change_until_rotated(stage) -> None:
    first, again = run("credentials").output, run("credentials").output

    assert first == again
    assert run("credentials", "--rotate").output != first


def test_credentials_can_be_revoked(stage) -> None:
    first = run("credentials").output

    assert run("credentials", "--revoke").output == "1 deleted\n"
    assert run("credentials").output != first


def test_stats_print_the_days_counters_in_upstreams_format(stage) -> None:
    table = boto3.resource("dynamodb").Table("Rendezvous")
    DynamoStatistics(table).add(date(2026, 11, 20), {"client_poll|CA|unrestricted|sqs|matched": 3})

    text = run("stats", "--day", "2026-11-20").output

    assert text.startswith("snowflake-stats-end 2026-11-21 00:00:00 (86400 s)\n")
    assert "client-snowflake-match-count 8\n" in text
    assert "client-sqs-ips CA=8\n" in text
    assert json.loads(run("stats", "--day", "2026-11-20", "--json").output)["counters"] == {
        "client_poll|CA|unrestricted|sqs|matched": 3
    }


def test_a_simulated_proxy_answers(stage) -> None:
    assert run("proxy", "--rounds", "2").output == "client match: answered\n" * 2
    assert json.loads(run("proxy", "--json").output)["accepted"] is True


def test_a_refused_offer_prints_the_reason(stage) -> None:
    sqs = boto3.client("sqs")

    def refuse() -> None:
        looks = iter(lambda: sqs.receive_message(QueueUrl=stage["BrokerQueueUrl"], MessageAttributeNames=["All"]), None)
        # The pause lets the client run: without it, this loop starved the client's thread, once for an hour.
        received = next(found for found in looks if "Messages" in found or threading.Event().wait(0.02))
        client_id = received["Messages"][0]["MessageAttributes"]["ClientID"]["StringValue"]
        url = sqs.create_queue(QueueName=f"snowflake-client-{client_id}")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody='{"error":"no snowflake proxies currently available"}')

    broker = threading.Thread(target=refuse)
    broker.start()
    with pytest.raises(BrokerRefused, match="no snowflake proxies currently available"):
        run("offer")
    broker.join()


def test_an_offer_is_read_as_json_or_sdp(tmp_path: Path) -> None:
    (tmp_path / "bare").write_text(SDP, newline="")
    (tmp_path / "json").write_text(json.dumps({"type": "offer", "sdp": SDP}))

    assert json.loads(session_description(tmp_path / "bare")) == {"type": "offer", "sdp": SDP}
    assert json.loads(session_description(tmp_path / "json")) == {"type": "offer", "sdp": SDP}
    assert json.loads(session_description(None))["type"] == "offer"


def test_an_offer_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SDP.encode())))

    assert json.loads(session_description(Path("-")))["sdp"] == SDP


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_an_unreadable_offer_file_is_named_in_the_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "offer.sdp"
    if content is not None:
        path.write_text(content)

    with pytest.raises(RejectedError, match=r"offer\.sdp"):
        session_description(path)
