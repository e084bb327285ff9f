"""The commands `signalbox rendezvous` for a group of stages, in two regions of moto; a third is away."""

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest

from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.cli.shared.days import today
from signalbox.cli.shared.deployment import find_deployment
from signalbox.errors import RejectedError
from signalbox.rendezvous.rules.peer_address import PeerAddress, parse_peers
from tests.cli.rendezvous.test_rendezvous import ACCOUNT, _add_output, broker_url, run, stage

__all__ = ["broker_url", "stage"]

HERE, NEAR = "us-east-1", "eu-west-1"
BRIDGES = f"{'A' * 40},{'B' * 40}"


def address(region: str, stage: str) -> str:
    return str(PeerAddress(region, stage, "Rendezvous", "key", "snowflake-broker", "snowflake-client-"))


GROUP = [address(HERE, "signalbox"), address(NEAR, "signalbox-eu")]
AWAY = address("ap-northeast-1", "gone")


@pytest.fixture
def near(stage: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A second stage, with two bridges, in another region; return its table."""
    _add_output("RendezvousPeer", GROUP[0])
    _add_output("RendezvousPeers", ",".join(GROUP))
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("AWS_DEFAULT_REGION", NEAR)
        boto3.client("iam").create_user(UserName="client-eu")
        secret = boto3.client("secretsmanager").create_secret(Name="client", SecretString="none")["ARN"]
        outputs = {
            **stage,
            "BrokerQueueArn": f"arn:aws:sqs:{NEAR}:{ACCOUNT}:snowflake-broker",
            "ClientUserName": "client-eu",
            "ClientSecretArn": secret,
            "BridgeFingerprints": BRIDGES,
            "RendezvousPeer": GROUP[1],
        }
        template = {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": {name: {"Value": value} for name, value in outputs.items()},
        }
        boto3.client("cloudformation").create_stack(StackName="signalbox-eu", TemplateBody=json.dumps(template))
        return boto3.resource("dynamodb").create_table(
            TableName="Rendezvous",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk")],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        )


def test_credentials_of_all_regions_are_one_line_for_each_queue_and_bridge(near) -> None:
    lines = run("credentials", "--all").stdout.splitlines()

    queues = [f"sqsqueue=https://sqs.{region}.amazonaws.com/{ACCOUNT}/snowflake-broker" for region in (HERE, NEAR)]
    assert [word for line in lines for word in line.split() if word.startswith("sqsqueue=")] == [
        queues[0],
        queues[1],
        queues[1],
    ]
    assert len({line.split()[2] for line in lines}) == 3  # Tor identifies a bridge by its address
    assert len({line.split()[5] for line in lines}) == 2  # each region's clients have a key of their own


def test_credentials_of_all_regions_as_json(near) -> None:
    shown = json.loads(run("credentials", "--all", "--json").stdout)

    assert [(one["region"], len(one["bridge_lines"])) for one in shown["clients"]] == [(HERE, 1), (NEAR, 2)]
    assert shown["away"] == {}


def test_without_peers_all_regions_are_the_own_one(stage) -> None:
    assert len(run("credentials", "--all").stdout.splitlines()) == 1


@pytest.mark.parametrize("change", ["--rotate", "--revoke"])
def test_a_key_is_changed_in_one_region_at_a_time(near, change) -> None:
    with pytest.raises(RejectedError, match="--all only shows"):
        run("credentials", "--all", change, "--yes")


def test_statistics_of_all_regions_add_up(near) -> None:
    here = boto3.resource("dynamodb", region_name=HERE).Table("Rendezvous")
    DynamoStatistics(here).add(today(), {"client_poll|CA|unrestricted|sqs|matched": 3})
    DynamoStatistics(near).add(today(), {"client_poll|CA|unrestricted|sqs|matched": 6, "other": 1})

    shown = json.loads(run("stats", "--all", "--json").stdout)
    text = run("stats", "--all")

    assert shown["counters"] == {"client_poll|CA|unrestricted|sqs|matched": 9, "other": 1}
    assert shown["regions"][NEAR] == {"client_poll|CA|unrestricted|sqs|matched": 6, "other": 1}
    assert "client-snowflake-match-count 16\n" in text.stdout
    assert text.stderr == f"· the sum of {HERE}, {NEAR}\n"


def test_a_region_that_is_away_is_named_and_takes_no_other_with_it(near) -> None:
    _add_output("RendezvousPeers", ",".join([*GROUP, AWAY]))

    shown, lines = run("stats", "--all", "--json"), run("credentials", "--all")

    assert (shown.exit_code, lines.exit_code) == (1, 1)
    assert list(json.loads(shown.stdout)["regions"]) == [HERE, NEAR]
    assert "gone" in json.loads(shown.stdout)["away"]["ap-northeast-1"]
    assert len(lines.stdout.splitlines()) == 3
    assert "· ap-northeast-1 is left out: " in lines.stderr


def test_a_command_does_not_wait_minutes_for_a_region_that_is_away(near) -> None:
    """boto3 tries five times, a minute each."""
    peer = find_deployment(aws=True).in_region(NEAR, stage="signalbox-eu")
    local = replace(
        peer, endpoint_url="http://127.0.0.1:1", administrator={"access_key_id": "a", "secret_access_key": "s"}
    )

    for config in (one.session().client("dynamodb").meta.config for one in (peer, local)):
        assert config.connect_timeout + config.read_timeout < 20
        assert config.retries["total_max_attempts"] == 2


def test_a_table_that_does_not_respond_is_named(near) -> None:
    near.delete()

    shown = run("stats", "--all", "--json")

    assert shown.exit_code == 1
    assert "ResourceNotFoundException" in json.loads(shown.stdout)["away"][NEAR]


def test_the_setting_of_a_group_has_an_address_for_each_stage(near) -> None:
    result = run("peers", f"{HERE}:signalbox", f"{NEAR}:signalbox-eu")
    shown = json.loads(run("peers", f"{NEAR}:signalbox-eu", "--json").stdout)

    name, _, setting = result.stdout.strip().partition("=")
    assert name == "rendezvous_peers"
    assert list(map(str, parse_peers(setting))) == GROUP
    assert shown == {"rendezvous_peers": GROUP[1]}
    assert "deploy each of these stages with this setting" in result.stderr


@pytest.mark.parametrize("text", [NEAR, f"{NEAR}:", ":signalbox"])
def test_a_stage_without_its_region_is_refused_with_an_example(stage, text) -> None:
    with pytest.raises(RejectedError, match="expected REGION:STAGE, such as eu-west-1:signalbox-eu"):
        run("peers", text)


def test_a_stage_of_an_older_version_is_to_be_deployed_again(stage) -> None:
    with pytest.raises(RejectedError, match="no output 'RendezvousPeer': deploy it again"):
        run("peers", f"{HERE}:signalbox")
