"""`signalbox doctor` and the doctor of `signalbox deploy`, with AWS's responses over the wire."""

import json
from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from typer.testing import CliRunner, Result

from signalbox import __version__
from signalbox.cli.doctor.examination import deployed_version
from signalbox.cli.doctor.settings import InvalidSettings
from signalbox.cli.main import app
from signalbox.doctor.findings import CallFailed
from signalbox.errors import RejectedError
from signalbox.local import cdk
from signalbox.local.files import CHECKOUT
from tests.fakes.aws import aws
from tests.fakes.wire import ACCOUNT, Answer, Wire, concurrency, refusal, result, wire

__all__ = ["aws", "wire"]
TOPIC = f"arn:aws:sns:eu-central-1:{ACCOUNT}:alarms"


def doctor(*options: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *options], catch_exceptions=False)


def findings(*options: str) -> dict[str, dict[str, Any]]:
    shown = doctor("--json", *options)
    document = json.loads(shown.stdout)
    assert document["ready"] is (shown.exit_code == 0)
    return {one["check"]: one for one in document["findings"]}


def test_a_healthy_account_has_no_obstacle(wire: Wire):
    shown = doctor()

    assert shown.exit_code == 0
    assert f"ok    credentials: account {ACCOUNT}, as assumed-role/Deployer/ann" in shown.stdout
    assert "stop" not in shown.stdout
    assert "DescribeConfigurationRecorders" in wire.asked


def test_every_requirement_has_its_line(wire: Wire):
    queue = f"broker_queue_arn=arn:aws:sqs:eu-central-1:{ACCOUNT}:offers"

    assert set(findings("-c", f"alarm_topic_arn={TOPIC}", "-c", queue)) == {
        *(
            "Lambda runtime",
            "credentials",
            "region",
            "Lambda concurrency",
            "Config recorder",
            "queue sources",
            "version",
            "alarm topic",
            "broker queue",
            "IAM users",
            "Lake Formation",
        ),
    }


@pytest.mark.parametrize(
    ("capability", "own"),
    [
        ("rendezvous", {"Config recorder", "IAM users"}),
        ("splitting", set()),
        ("exchange", {"IAM users"}),
        ("live", {"IAM users"}),
        ("history", {"Lake Formation"}),
    ],
)
def test_what_no_capability_of_the_stage_needs_is_not_examined(wire: Wire, capability: str, own: set[str]):
    of_all = {"Lambda runtime", "credentials", "region", "Lambda concurrency", "queue sources", "version"}

    assert set(findings("-c", f"capabilities={capability}")) == of_all | own


@pytest.mark.parametrize(
    ("operation", "answer", "check", "verdict", "said"),
    [
        (
            "GetCallerIdentity",
            result("GetCallerIdentity", f"<Arn>arn:aws:iam::{ACCOUNT}:root</Arn><Account>{ACCOUNT}</Account>"),
            "credentials",
            "warn",
            "root user",
        ),
        ("GetAccountSettings", concurrency(10, 10), "Lambda concurrency", "stop", "request 1000"),
        ("GetAccountSettings", concurrency(450, 90), "Lambda concurrency", "warn", "reservations before"),
        (
            "GetAccountSettings",
            refusal("AccessDeniedException", status=403),
            "Lambda concurrency",
            "warn",
            "lambda:GetAccountSettings",
        ),
        ("DescribeConfigurationRecorders", refusal("AccessDeniedException"), "Config recorder", "warn", "config:Desc"),
        ("GetTopicAttributes", refusal("NotFound", kind="query", status=404), "alarm topic", "stop", "correct"),
    ],
)
def test_a_response_of_aws_has_its_verdict_and_its_remedy(  # noqa: PLR0917 - a table of cases
    wire: Wire, operation, answer, check, verdict, said
):
    wire.answers[operation] = answer

    found = findings("-c", f"alarm_topic_arn={TOPIC}")[check]

    assert found["verdict"] == verdict
    assert said in f"{found['text']} {found['remedy']}"
    assert found["remedy"]


def test_the_doctor_names_the_versions_of_the_command_and_of_the_stage(wire: Wire):
    assert f"ok    version: {__version__} of this command; stage signalbox is not deployed\n" in doctor().stdout
    wire.answers["DescribeStacks"] = stack(version="0.1.0")
    assert f"ok    version: {__version__} of this command; stage signalbox has 0.1.0\n" in doctor().stdout
    wire.answers["DescribeStacks"] = refusal("AccessDenied", kind="query", status=403)
    assert findings()["version"]["verdict"] == "warn"


def test_the_settings_decide_what_is_needed(wire: Wire):
    assert findings()["Lambda concurrency"]["verdict"] == "ok"
    assert findings("-c", "proxy_concurrency=990")["Lambda concurrency"]["verdict"] == "stop"
    assert (
        findings("-c", "reserve_concurrency=false", "-c", "rendezvous_doors=api")["Lambda concurrency"]["verdict"]
        == "ok"
    )


def test_without_credentials_nothing_else_is_asked(wire: Wire, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(NoCredentialsError):
        doctor()

    assert wire.asked == []


def test_refused_credentials_end_the_examination(wire: Wire):
    wire.answers["GetCallerIdentity"] = refusal("InvalidClientTokenId", kind="query", status=403)

    with pytest.raises(ClientError, match="InvalidClientTokenId"):
        doctor()

    assert wire.hosts == {"GetCallerIdentity": "sts.eu-central-1.amazonaws.com"}


def test_a_deployment_needs_a_region(wire: Wire, monkeypatch):
    monkeypatch.delenv("AWS_REGION")

    with pytest.raises(RejectedError, match="no AWS region is set"):
        doctor()


@pytest.mark.parametrize(
    ("region", "said"),
    [
        ("narnia", "'narnia' is not a region of AWS"),
        ("cn-north-1", "partition 'aws-cn'"),
        ("us-gov-west-1", "partition 'aws-us-gov'"),
    ],
)
def test_a_wrong_region_is_an_obstacle(wire: Wire, monkeypatch, region, said):
    monkeypatch.setenv("AWS_REGION", region)

    found = findings()

    assert found["region"]["verdict"] == "stop"
    assert said in f"{found['region']['text']} {found['region']['remedy']}"
    assert "GetAccountSettings" not in wire.asked


def test_the_region_of_the_settings_comes_first(wire: Wire):
    assert "eu-west-1" in findings("-c", "region=eu-west-1")["region"]["text"]


def test_without_a_network_one_error_says_so(wire: Wire):
    wire.answers.clear()

    with pytest.raises(BotoCoreError):
        doctor()

    assert set(wire.asked) == {"GetCallerIdentity"}


def test_a_call_without_a_network_is_reported_as_not_checked(wire: Wire):
    del wire.answers["GetAccountSettings"]

    found = findings()["Lambda concurrency"]

    assert (found["verdict"], found["text"].split(":")[0]) == ("warn", "not checked")


@pytest.mark.parametrize(
    ("setting", "said"), [("poll_budget_us=5", "did you mean 'poll_budget_usd'"), ("stage", "KEY=VALUE")]
)
def test_invalid_settings_are_refused_before_any_call(wire: Wire, setting, said):
    with pytest.raises(InvalidSettings, match=said):
        doctor("-c", setting)
    assert wire.asked == []


@pytest.fixture
def deployments(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, object]]:
    """Record deployments instead of running the CDK."""
    made: list[Mapping[str, object]] = []

    def record(context: list[str], *, bootstrap: bool, approve: bool) -> int:
        made.append({"context": context, "bootstrap": bootstrap, "approve": approve})
        return 0

    monkeypatch.setattr(cdk, "deploy_to_aws", record)
    return made


def deploy(*options: str) -> Result:
    return CliRunner().invoke(app, ["deploy", *options], catch_exceptions=False)


def test_a_deployment_begins_with_the_doctor(wire: Wire, deployments):
    shown = deploy("-c", "stage=try", "--bootstrap", "--approve")

    assert shown.exit_code == 0
    assert shown.stderr.startswith(f"· stage try in eu-central-1, from {CHECKOUT}\n")
    assert "ok    credentials" in shown.stdout
    assert deployments == [{"context": ["stage=try"], "bootstrap": True, "approve": True}]


def test_a_deployment_names_the_region_of_its_settings_and_refuses_unknown_ones(wire: Wire, deployments):
    shown = deploy("--skip-doctor", "-c", "region=eu-west-1")

    assert f"stage signalbox in eu-west-1, from {CHECKOUT}" in shown.stderr
    with pytest.raises(InvalidSettings, match="did you mean 'stage'"):
        deploy("--skip-doctor", "-c", "stge=try")
    assert len(deployments) == 1


def test_an_obstacle_stops_a_deployment_and_names_the_options(wire: Wire, deployments):
    wire.answers["GetAccountSettings"] = concurrency(10, 10)

    shown = deploy()

    assert (shown.exit_code, deployments) == (1, [])
    assert "stop  Lambda concurrency" in shown.stdout
    assert "--force" in shown.stderr
    assert "--skip-doctor" in shown.stderr


def test_force_deploys_despite_an_obstacle(wire: Wire, deployments):
    wire.answers["GetAccountSettings"] = concurrency(10, 10)

    assert "stop  Lambda concurrency" in deploy("--force").stdout
    assert len(deployments) == 1


def test_a_deployment_without_the_doctor_reads_the_settings_of_the_stage_only(wire: Wire, deployments):
    deploy("--skip-doctor")

    assert (len(deployments), wire.asked) == (1, ["DescribeStacks"])


def stack(*, version: str = __version__, **settings: str) -> Answer:
    outputs = {"Settings": json.dumps(settings), "Version": version}
    output = "".join(
        f"<member><OutputKey>{name}</OutputKey><OutputValue>{value}</OutputValue></member>"
        for name, value in outputs.items()
    )
    facts = "<StackName>signalbox</StackName><StackStatus>CREATE_COMPLETE</StackStatus>"
    facts += "<CreationTime>2026-11-20T00:00:00Z</CreationTime>"
    return result("DescribeStacks", f"<Stacks><member>{facts}<Outputs>{output}</Outputs></member></Stacks>")


def test_a_deployment_keeps_the_settings_that_it_leaves_out_and_names_what_differs(wire: Wire, deployments):
    wire.answers["DescribeStacks"] = stack(poll_budget_usd="5", offer_concurrency="20", page_concurrency="9")

    shown = deploy("-c", "offer_concurrency=30", "--reset", "page_concurrency")

    assert [made["context"] for made in deployments] == [["poll_budget_usd=5", "offer_concurrency=30"]]
    assert "· setting kept: poll_budget_usd = 5\n" in shown.stderr
    assert "· setting changed: offer_concurrency = 20 → 30\n" in shown.stderr
    assert "· setting changed: page_concurrency = 9 → 10\n" in shown.stderr
    assert wire.hosts["DescribeStacks"] == "cloudformation.eu-central-1.amazonaws.com"


def test_a_deployment_ends_when_the_settings_of_the_stage_cannot_be_read(wire: Wire, deployments):
    wire.answers["DescribeStacks"] = refusal("AccessDenied", kind="query", status=403)

    with pytest.raises(ClientError, match="DescribeStacks"):
        deploy()
    assert deployments == []


def test_the_version_of_a_stage_is_an_output_of_its_stack(aws):
    session, template = boto3.Session(region_name="eu-central-1"), {"Resources": {"T": {"Type": "AWS::SNS::Topic"}}}
    stacks = session.client("cloudformation")
    assert deployed_version(session, "signalbox") is None
    stacks.create_stack(StackName="older", TemplateBody=json.dumps(template))
    assert deployed_version(session, "older") is None
    versioned = json.dumps(template | {"Outputs": {"Version": {"Value": "0.3.0"}}})
    stacks.create_stack(StackName="signalbox", TemplateBody=versioned)
    assert deployed_version(session, "signalbox") == "0.3.0"


def test_a_stack_that_cannot_be_read_has_no_known_version(wire: Wire):
    wire.answers["DescribeStacks"] = refusal("ValidationError", kind="query", status=400)
    with pytest.raises(CallFailed):
        deployed_version(boto3.Session(region_name="eu-central-1"), "signalbox")
