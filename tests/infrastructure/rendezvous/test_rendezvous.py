"""The template of rendezvous: the effect of the settings, and what its functions know."""

import json
from dataclasses import fields

import pytest

from signalbox.aws.shared import leases
from signalbox.history.event import HistoryEvent
from stacks.history.lake import COLUMNS
from stacks.settings.config import POLL_USD_PER_MILLION, Config
from stacks.settings.context import InvalidConfig, read_config
from stacks.shared import tables
from tests.infrastructure.templates import templates
from tests.infrastructure.test_resources import DOORS
from tests.infrastructure.test_resources import THEIRS as ARN

KEY_ARN = "arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555"


def test_the_doors_know_the_stage_by_the_names_of_its_queues_and_stream(stage):
    """They are in the state stack, which cannot refer to the stage's."""
    queues, streams = stage.every("AWS::SQS::Queue"), stage.every("AWS::KinesisFirehose::DeliveryStream")
    variables = stage.every("AWS::Lambda::Function")["Doors/Proxies"]["Properties"]["Environment"]["Variables"]
    found = {name: stage.text(value) for name, value in variables.items()}
    url = "https://sqs.<Region>.<URLSuffix>/<AccountId>/"

    assert found["BROKER_QUEUE_URL"] == url + queues["Rendezvous/Broker"]["Properties"]["QueueName"]
    assert found["HISTORY_OVERFLOW_URL"] == url + queues["HistoryOverflow/Queue"]["Properties"]["QueueName"]
    assert found["HISTORY_STREAM"] == streams["HistoryLake/Events"]["Properties"]["DeliveryStreamName"]


@pytest.mark.parametrize("has_api", [False, True], ids=["url", "api"])
def test_a_door_that_is_not_chosen_is_closed_and_keeps_its_name(has_api):
    """Lambda refuses a request to a URL for which the function has no permission."""
    stage = templates(reserve_concurrency="false", rendezvous_doors="api") if has_api else templates()
    principals = {one["Properties"]["Principal"] for one in stage.every("AWS::Lambda::Permission").values()}
    allowed = {
        (stage.text(one["Properties"]["FunctionName"]), one["Properties"]["Action"])
        for one in stage.every("AWS::Lambda::Permission").values()
        if one["Properties"]["Principal"] == "*"
    }
    actions = ("lambda:InvokeFunctionUrl", "lambda:InvokeFunction")

    assert set(stage.every("AWS::Lambda::Url")) == {"Doors/ProxiesUrl", "Doors/ClientsUrl"}
    assert allowed == ({(door, action) for door in DOORS for action in actions} if not has_api else set())
    assert ("Rendezvous/Api/Http" in stage.every("AWS::ApiGatewayV2::Api")) == has_api
    assert "apigateway.amazonaws.com" in principals  # of the live page, too


def test_urls_need_reserved_concurrency():
    with pytest.raises(InvalidConfig, match="rendezvous_doors=url needs reserve_concurrency=true"):
        read_config({"reserve_concurrency": "false"})
    assert read_config({"reserve_concurrency": "false", "rendezvous_doors": "api"}).doors == ("api",)


def test_the_table_has_no_index(stage):
    """A write to an index would cost as much as the write itself."""
    table = stage.every("AWS::DynamoDB::Table")["Rendezvous"]["Properties"]

    assert "GlobalSecondaryIndexes" not in table
    assert tables.BY_EXPIRY == leases.BY_EXPIRY_INDEX


@pytest.mark.parametrize(("doors", "dearest"), [("url", "url"), ("api", "api"), ("url,api", "api")])
def test_the_polls_a_minute_are_those_that_the_budget_pays_for(doors, dearest):
    polls = Config(poll_budget_usd=50, rendezvous_doors=doors).polls_per_minute

    assert polls == round(50e6 / POLL_USD_PER_MILLION[dearest] / (30 * 24 * 60))


def test_the_table_of_history_has_the_fields_of_the_event(stage):
    kinds = {int: "bigint", str: "string"}
    (table,) = stage.every("AWS::Glue::Table").values()
    columns = table["Properties"]["TableInput"]["StorageDescriptor"]["Columns"]

    assert [column["Name"] for column in columns] == ["version", *(f.name for f in fields(HistoryEvent))]
    special = {"version": "int", "occurred_at": "timestamp", "attempt": "int", "labels": "map<string,string>"}
    for f in fields(HistoryEvent):
        kind = int if "int" in str(f.type) else str
        assert special.get(f.name, kinds[kind]) == COLUMNS[f.name]


def test_an_offer_whose_function_was_killed_comes_again_within_its_clients_five_seconds(otherwise):
    """Lambda refuses a mapping whose function may run longer than the queue hides its messages."""
    broker = otherwise.every("AWS::SQS::Queue")["Rendezvous/Broker"]["Properties"]
    offer = otherwise.every("AWS::Lambda::Function")["Rendezvous/Offer"]["Properties"]

    assert broker["VisibilityTimeout"] == 3
    assert offer["Timeout"] <= broker["VisibilityTimeout"]
    assert offer["Environment"]["Variables"]["OFFER_PATIENCE_SECONDS"] == "60"


def test_an_offer_waits_for_its_functions_longer_than_its_client_for_a_reply(stage):
    broker = stage.every("AWS::SQS::Queue")["Rendezvous/Broker"]["Properties"]

    assert broker["MessageRetentionPeriod"] == 300
    assert broker["QueueName"] == "snowflake-broker"


def test_parked_offers_raise_no_alarm(stage):
    alarm = stage.every("AWS::CloudWatch::Alarm")["Rendezvous/AgeAlarm"]["Properties"]

    assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (90, 3)


def test_http_functions_time_out_before_the_api(otherwise):
    timeouts = {name: f["Properties"]["Timeout"] for name, f in otherwise.every("AWS::Lambda::Function").items()}

    assert (timeouts["Doors/Proxies"], timeouts["Doors/Clients"]) == (15, 29)


def test_the_broker_queue_can_be_created_again_with_its_attributes(stage):
    sweep = stage.every("AWS::Lambda::Function")["Rendezvous/Sweep"]["Properties"]
    attributes = json.loads(stage.text(sweep["Environment"]["Variables"]["BROKER_QUEUE_ATTRIBUTES"]))

    assert "RedrivePolicy" not in attributes
    assert attributes["KmsMasterKeyId"] == "StateKey"
    assert attributes["KmsDataKeyReusePeriodSeconds"] == "3600"
    assert (attributes["VisibilityTimeout"], attributes["MessageRetentionPeriod"]) == ("3", "300")


def test_an_imported_queue_replaces_the_broker_queue():
    stage = templates(capabilities="rendezvous", broker_queue_arn=ARN, broker_queue_key_arn=KEY_ARN)
    mapping = stage.every("AWS::Lambda::EventSourceMapping")["Rendezvous/Offer/Offers"]
    granted = [s for _, s in stage.statements() if ARN in str(s.get("Resource"))]

    assert "Rendezvous/Broker" not in stage.every("AWS::SQS::Queue")
    assert mapping["Properties"]["EventSourceArn"] == ARN
    assert stage.stage["Outputs"]["BrokerQueueName"]["Value"] == "their-queue"
    assert granted
    assert not [s for s in granted if "sqs:CreateQueue" in s["Action"]]


def test_history_becomes_parquet_by_the_hour(stage):
    stream = stage.every("AWS::KinesisFirehose::DeliveryStream")["HistoryLake/Events"]["Properties"]
    target = stream["ExtendedS3DestinationConfiguration"]

    assert target["Prefix"] == "raw/dt=!{timestamp:yyyy-MM-dd}/hour=!{timestamp:HH}/"
    assert target["ErrorOutputPrefix"].startswith("errors/!{firehose:error-output-type}/")
    assert target["DataFormatConversionConfiguration"]["Enabled"] is True
    assert stream["DeliveryStreamEncryptionConfigurationInput"]["KeyType"] == "CUSTOMER_MANAGED_CMK"
