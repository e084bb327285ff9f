"""cdk-nag's findings and the app's error messages."""

import json
import os
import subprocess
import sys

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_sqs as sqs

from app import build, check
from stacks.settings.context import InvalidConfig
from tests.infrastructure.other_settings import OTHERWISE
from tests.infrastructure.templates import ROOT, context
from tests.infrastructure.test_resources import THEIRS


def run_app(folder, *, region="eu-central-1", **settings):
    """Run app.py as the CDK CLI does with credentials of a region, and return the completed process."""
    given = {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps(context(**settings))}
    environment = {**os.environ, **given, "CDK_DEFAULT_REGION": region}
    command = [sys.executable, "app.py"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  # our own app


@pytest.mark.parametrize(
    "settings",
    [
        {**OTHERWISE, "broker_queue_arn": THEIRS, "client_queue_prefix": "other-"},
        pytest.param({"capabilities": "exchange", "alarms": False, "dashboard": False}, marks=pytest.mark.release),
        pytest.param({"capabilities": "rendezvous,splitting,live"}, marks=pytest.mark.release),
        pytest.param({"capabilities": "history"}, marks=pytest.mark.release),
    ],
    ids=["existing queue and other settings", "exchange", "without history", "history"],
)
def test_every_finding_is_fixed_or_acknowledged(settings, tmp_path):
    """The stages on AWS and on this machine, with the defaults, are a check of their own in `make check`."""
    app = App(outdir=str(tmp_path), context=context(**settings))
    build(app)
    check(app)

    app.synth()


def test_an_unacknowledged_finding_fails_the_synthesis(tmp_path):
    app = App(outdir=str(tmp_path))
    sqs.Queue(Stack(app, "careless"), "Queue")
    check(app)

    with pytest.raises(RuntimeError, match="AwsSolutions-SQS3"):
        app.synth()


def test_all_invalid_settings_are_reported_together(tmp_path):
    done = run_app(tmp_path, offer_patience_second=30, poll_budget_usd="long", sweep_interval_minutes=0)

    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 2
    assert lines == [
        "error: 'offer_patience_second' is not a setting; did you mean 'offer_patience_seconds'?",
        "error: poll_budget_usd must be a whole number, not 'long'",
        "error: sweep_interval_minutes must be at least 1 min, not 0",
    ]
    assert "Traceback" not in done.stderr


def test_a_region_of_the_credentials_in_an_untried_partition_fails_the_synthesis(tmp_path):
    done = run_app(tmp_path, region="us-gov-west-1")

    assert done.returncode == 2
    assert "error: region 'us-gov-west-1' is in another partition than `aws`" in done.stderr


def problems_of_bridges(content, folder):
    bridges = folder / "bridges.jsonl"
    bridges.write_bytes(content)
    with pytest.raises(InvalidConfig) as refused:
        build(App(outdir=str(folder), context=context(bridge_list_file=str(bridges))))
    return refused.value.problems


def test_an_invalid_bridge_list_fails_the_synthesis(tmp_path):
    lines = b'{"displayName":"a","webSocketAddress":"wss://a.example/","fingerprint":"12"}\n\n'

    assert problems_of_bridges(lines, tmp_path) == (
        "bridge_list_file: line 1: bridge fingerprint invalid",
        "bridge_list_file: line 2: unexpected end of JSON input",
    )


def test_a_bridge_list_that_is_no_text_fails_the_synthesis(tmp_path):
    (problem,) = problems_of_bridges(b"\xff", tmp_path)

    assert problem.startswith("bridge_list_file is no readable text: 'utf-8' codec can't decode byte 0xff")
