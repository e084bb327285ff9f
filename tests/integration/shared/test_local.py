"""The content of the local stage's `local.json`."""

import base64
import json
import urllib.request

import pytest

from signalbox.cli.shared import kept_settings
from signalbox.local import stage

pytestmark = pytest.mark.emulator

KEYS = {
    "endpoint_url",
    "region",
    "account",
    "broker_queue_url",
    "rendezvous_url",
    "rendezvous_clients_url",
    "history_bucket",
    "client_credentials",
    "admin_credentials",
    "outputs",
}


def test_local_json_has_the_promised_keys(deployed):
    assert deployed.keys() >= KEYS


def test_the_rendezvous_url_serves_the_broker(deployed):
    with urllib.request.urlopen(f"{deployed['rendezvous_url']}robots.txt") as answer:  # noqa: S310 - loopback
        assert answer.read() == b"User-agent: *\nDisallow: /\n"


def test_the_clients_key_is_also_given_in_the_format_of_snowflake_clients(deployed):
    credentials = deployed["client_credentials"]

    assert json.loads(base64.b64decode(credentials["sqscreds"])) == {
        "aws-access-key-id": credentials["access_key_id"],
        "aws-secret-key": credentials["secret_access_key"],
    }


def test_the_broker_queue_has_the_given_url(deployed, deployment):
    name = deployment.outputs["BrokerQueueName"]

    assert deployment.session().client("sqs").get_queue_url(QueueName=name)["QueueUrl"] == deployed["broker_queue_url"]


def test_a_local_stage_records_its_settings(deployed):
    found = kept_settings.plan(deployed["outputs"], ["poll_budget_usd=5"], place=stage.local_context([]))

    assert found.context == ["poll_budget_usd=5"]
    assert found.lines == ("setting changed: poll_budget_usd = 25 → 5",)
