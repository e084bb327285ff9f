"""The commands `signalbox rendezvous` against a stage in moto."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.cli.main import app
from signalbox.cli.rendezvous.commands import session_description
from signalbox.cli.rendezvous.credentials import fingerprints
from signalbox.cli.shared import confirmation
from signalbox.cli.shared.days import today
from signalbox.clients.rendezvous.client import BrokerRefused
from signalbox.clients.rendezvous.simulator import sample_offer
from signalbox.errors import RejectedError
from signalbox.rendezvous.wire.bridges import DEFAULT_FINGERPRINT
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import MATCH, poll_response
from tests.fakes.aws import local_stage
from tests.fakes.http_endpoint import Handler, serving

ACCOUNT = "123456789012"
SDP = "v=0\r\na=candidate:1 1 udp 1 192.0.2.1 1 typ host\r\n"


class Broker(Handler):
    """A broker with one client for each proxy that accepts its answer."""

    def respond(self) -> None:
        self.received()
        offer = poll_response(MATCH, offer=sample_offer("seed"), nat=Nat.UNRESTRICTED, next_poll=1)
        self.answer(offer if self.path == "/proxy" else '{"Status":"success"}')


@pytest.fixture
def broker_url() -> Iterator[str]:
    with serving(Broker) as url:
        yield f"{url}/"


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
        "RendezvousTable": "Rendezvous",
        "RendezvousUrl": broker_url,
    }
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    boto3.client("cloudformation").create_stack(StackName="signalbox", TemplateBody=json.dumps(template))
    return outputs


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(app, ["rendezvous", *arguments, "--aws"], catch_exceptions=False, **options)


def _add_output(name: str, value: str) -> None:
    cloudformation = boto3.client("cloudformation")
    template = cloudformation.get_template(StackName="signalbox")["TemplateBody"]
    template["Outputs"][name] = {"Value": value}
    cloudformation.update_stack(StackName="signalbox", TemplateBody=json.dumps(template))


def test_credentials_have_the_format_of_upstreams_client(stage) -> None:
    result = run("credentials", "--json")

    shown = json.loads(result.stdout)
    assert shown["sqsqueue"] == f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/snowflake-broker"
    assert set(json.loads(base64.b64decode(shown["sqscreds"]))) == {"aws-access-key-id", "aws-secret-key"}
    assert shown["arguments"].startswith(f"-sqsqueue {shown['sqsqueue']} -sqscreds {shown['sqscreds']} -ice stun:")
    assert "environment" not in shown


def test_credentials_do_not_change_until_rotated(stage) -> None:
    first, again = run("credentials"), run("credentials")

    assert first.stdout == again.stdout
    assert f"· new key of the clients of stage signalbox in account {ACCOUNT}, us-east-1\n" in first.stderr
    assert "new key" not in again.stderr
    assert run("credentials", "--rotate").stdout != first.stdout


def test_credentials_can_be_revoked(stage) -> None:
    first = run("credentials").stdout

    revoked = run("credentials", "--revoke", "--yes").stdout

    assert revoked == f"1 key of the clients of stage signalbox in account {ACCOUNT}, us-east-1 deleted\n"
    assert run("credentials").stdout != first


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_a_revocation_that_is_not_confirmed_deletes_no_key(stage, monkeypatch, answer) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    first = run("credentials").stdout

    result = run("credentials", "--revoke", input=answer)

    assert result.exit_code == 1
    assert "It cuts off every client at once. [y/N]: Nothing is changed." in result.stderr
    assert run("credentials").stdout == first


def test_a_confirmed_revocation_deletes_the_keys(stage, monkeypatch) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    run("credentials")

    assert run("credentials", "--revoke", input="y\n").stdout.startswith("1 key of the clients of stage signalbox")
    assert run("credentials", "--revoke").stdout.startswith("0 keys of the clients")  # nothing to ask about


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_revocation_that_cannot_ask_names_the_option_yes(stage, options) -> None:
    first = run("credentials").stdout

    with pytest.raises(RejectedError, match="give --yes to confirm"):
        run("credentials", "--revoke", *options)
    assert run("credentials").stdout == first


def test_a_rotation_and_a_revocation_exclude_each_other(stage) -> None:
    with pytest.raises(RejectedError, match="--rotate and --revoke exclude each other"):
        run("credentials", "--rotate", "--revoke", "--yes")


def test_a_rotation_says_where_the_new_key_is_valid(stage) -> None:
    run("credentials")

    assert f"new key of the clients of stage signalbox in account {ACCOUNT}, us-east-1" in (
        run("credentials", "--rotate").stderr
    )


def test_the_bridge_lines_name_the_bridges_of_the_deployed_list(stage) -> None:
    _add_output("BridgeFingerprints", f"{'A' * 40},{'B' * 64}")

    shown = json.loads(run("credentials", "--json").stdout)

    assert [line.split()[3] for line in shown["bridge_lines"]] == ["A" * 40, "B" * 64]
    assert shown["bridge_line"] == shown["bridge_lines"][0]
    assert run("credentials").stdout.count("bridge_line  Bridge snowflake 192.0.2.") == 2


def test_an_offer_names_a_bridge_of_the_deployed_list(stage) -> None:
    assert fingerprints({}) == [DEFAULT_FINGERPRINT]
    assert fingerprints({"BridgeFingerprints": "A" * 40}) == ["A" * 40]
    assert fingerprints({"BridgeFingerprints": f"{'A' * 40},{DEFAULT_FINGERPRINT}"})[0] == DEFAULT_FINGERPRINT


def test_other_stun_servers_can_be_given(stage) -> None:
    line = json.loads(run("credentials", "--json", "--stun", "stun.example:3478", "--stun", "stun:b.example").stdout)

    assert line["bridge_line"].endswith(" ice=stun:stun.example:3478,stun:b.example")


@pytest.mark.parametrize("server", ["foo:99999", "foo:0", "foo:", "foo:x", "a b", "a,b", "turn:foo", "::1", ""])
def test_what_is_no_stun_server_is_refused_before_a_key_is_made(stage, server: str) -> None:
    with pytest.raises(RejectedError, match="--stun: expected HOST or HOST:PORT"):
        run("credentials", "--rotate", "--stun", server)

    assert boto3.client("iam").list_access_keys(UserName="client")["AccessKeyMetadata"] == []


def test_a_local_stages_file_gets_the_new_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage) -> None:
    folder = tmp_path / ".signalbox"
    folder.mkdir()
    local = {"outputs": stage, "client_credentials": {"access_key_id": "old"}, "page_url": "http://x/"}
    (folder / "local.json").write_text(json.dumps(local))
    deployment = local_stage(stage, folder)
    monkeypatch.setattr("signalbox.cli.shared.deployment.find_deployment", lambda **_: deployment)

    shown = json.loads(run("credentials", "--rotate", "--json").stdout)

    recorded = json.loads((folder / "local.json").read_text())
    assert recorded["client_credentials"]["sqscreds"] == shown["sqscreds"]
    assert recorded["page_url"] == "http://x/"


def test_stats_print_the_days_counters_in_upstreams_format(stage) -> None:
    table, day = DynamoTable(boto3.client("dynamodb"), "Rendezvous"), today() - timedelta(days=2)
    DynamoStatistics(table).add(day, {"client_poll|CA|unrestricted|sqs|matched": 3})

    text = run("stats", "--day", day.isoformat()).output

    assert text.startswith(f"snowflake-stats-end {day + timedelta(days=1)} 00:00:00 (86400 s)\n")
    assert "client-snowflake-match-count 8\n" in text
    assert "client-sqs-ips CA=8\n" in text
    assert json.loads(run("stats", "--day", day.isoformat(), "--json").output)["counters"] == {
        "client_poll|CA|unrestricted|sqs|matched": 3
    }


def test_stats_of_a_day_without_events_say_so(stage) -> None:
    yesterday = today() - timedelta(days=1)

    result = run("stats", "--day", "yesterday")

    assert result.stdout.startswith("snowflake-stats-end ")
    assert result.stderr == f"· nothing was counted on {yesterday}\n"


@pytest.mark.parametrize(
    ("days", "reason"),
    [(41, "counters are kept for 40 days.*`signalbox report rendezvous --from"), (-1, "has not begun")],
    ids=["forgotten", "future"],
)
def test_stats_of_a_day_that_is_not_kept_or_has_not_begun_are_refused(stage, days, reason) -> None:
    with pytest.raises(RejectedError, match=reason):
        run("stats", "--day", str(today() - timedelta(days=days)))


def test_a_mistyped_day_is_refused_with_an_example(stage) -> None:
    with pytest.raises(RejectedError, match=r"--day: expected a day such as \d{4}-\d\d-\d\d, `today` or `yesterday`"):
        run("stats", "--day", "tomorrow")


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

    with pytest.raises(RejectedError) as raised:
        session_description(path)
    assert str(raised.value).count("offer.sdp") == 1
