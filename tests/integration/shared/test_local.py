"""The local stage as a whole: what it writes down is true."""

import base64
import json
import urllib.request

import pytest

pytestmark = pytest.mark.emulator

KEYS = {
    "endpoint_url",
    "region",
    "account",
    "broker_queue_url",
    "rendezvous_url",
    "history_bucket",
    "client_credentials",
    "admin_credentials",
    "outputs",
}


def test_what_is_written_down_has_the_promised_keys(deployed):
    assert deployed.keys() >= KEYS


def test_the_rendezvous_answers_under_its_stable_url(deployed):
    with urllib.request.urlopen(f"{deployed['rendezvous_url']}robots.txt") as answer:  # noqa: S310 - loopback
        assert answer.read() == b"User-agent: *\nDisallow: /\n"


def test_the_clients_key_is_also_there_as_a_snowflake_client_wants_it(deployed):
    credentials = deployed["client_credentials"]

    assert json.loads(base64.b64decode(credentials["sqscreds"])) == {
        "aws-access-key-id": credentials["access_key_id"],
        "aws-secret-key": credentials["secret_access_key"],
    }


def test_commands_find_the_broker_queue_where_it_is_said_to_be(deployed, deployment):
    name = deployment.outputs["BrokerQueueName"]

    assert deployment.session().client("sqs").get_queue_url(QueueName=name)["QueueUrl"] == deployed["broker_queue_url"]
