"""The template of a front of an existing broker: a queue and a function, without data."""

import pytest

from stacks.settings.context import InvalidConfig, read_config
from tests.docs.costs import price, size
from tests.infrastructure.templates import Templates, templates
from tests.infrastructure.test_handlers import LAMBDAS, POWERTOOLS, variables_read

HANDLERS = LAMBDAS / "rendezvous"
URL = "https://broker.example/snowflake"
THEIRS = "arn:aws:sqs:eu-central-1:123456789012:snowflake-broker"


@pytest.fixture(scope="module")
def front() -> Templates:
    return templates(capabilities="rendezvous", broker_url=URL)


def test_a_front_has_no_table_no_api_and_no_secret(front):
    state = {resource["Type"] for resource in front.state["Resources"].values()}

    assert state == {"AWS::KMS::Key"}
    assert not front.every("AWS::ApiGatewayV2::Api")
    assert set(front.every("AWS::Lambda::Function")) == {"Rendezvous/Forward"}
    assert front.stage["Outputs"]["Capabilities"]["Value"] == "front"


def test_an_idle_front_costs_a_key_three_alarms_and_the_polling_of_a_queue(front):
    least, most = price(front)

    assert least == most
    assert most < 1.6
    assert size(front) < 25


def test_the_function_has_exactly_the_variables_that_its_handler_reads(front):
    function = front.every("AWS::Lambda::Function")["Rendezvous/Forward"]["Properties"]
    read = variables_read(HANDLERS / "forward.py", [HANDLERS / "wiring.py", HANDLERS / "deliveries.py"])

    assert set(function["Environment"]["Variables"]) - POWERTOOLS <= read
    assert function["Environment"]["Variables"]["BROKER_URL"] == URL


def test_the_queue_hides_an_offer_for_as_long_as_the_function_may_wait_for_the_broker(front):
    queue = front.every("AWS::SQS::Queue")["Rendezvous/Broker"]["Properties"]
    function = front.every("AWS::Lambda::Function")["Rendezvous/Forward"]["Properties"]

    assert queue["VisibilityTimeout"] == function["Timeout"] == 20


def test_the_function_reads_the_existing_queue_of_the_broker():
    found = templates(capabilities="rendezvous", broker_url=URL, broker_queue_arn=THEIRS)

    (mapping,) = found.every("AWS::Lambda::EventSourceMapping").values()
    assert mapping["Properties"]["EventSourceArn"] == THEIRS
    assert "Rendezvous/Broker" not in found.every("AWS::SQS::Queue")


def test_the_broker_queue_is_the_same_with_and_without_a_front(front):
    whole = templates(capabilities="rendezvous")

    assert {front.names[key]: key for key in front.names if front.names[key] == "Rendezvous/Broker"} == {
        whole.names[key]: key for key in whole.names if whole.names[key] == "Rendezvous/Broker"
    }


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"broker_url": "http://broker.example"}, "broker_url must be https"),
        ({"broker_url": URL, "capabilities": "exchange"}, "add it to capabilities"),
        ({"broker_url": "https://broker.example:70000"}, "broker_url is no URL"),
        ({"broker_url": "https://broker.example:0"}, "broker_url names no host"),
        ({"broker_url": "https://broker..example"}, "broker_url names no host"),
        ({"broker_url": "https://-broker.example"}, "broker_url names no host"),
        ({"broker_url": "ftp://broker.example"}, "broker_url"),
        ({"broker_url": "https://user@broker.example"}, "broker_url"),
    ],
)
def test_the_url_of_a_broker_is_https_and_of_rendezvous(settings, problem):
    with pytest.raises(InvalidConfig, match=problem):
        read_config(settings)
