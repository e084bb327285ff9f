"""The function `answer`."""

import json

import pytest

from lambdas.rendezvous import offer, proxies
from lambdas.rendezvous.proxies import handler
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.rendezvous.reporting.pages import CROSS_ORIGIN, TEXT
from tests.handlers.recorded_events import batch, client_id, event, message, request

ANSWER = sample_answer(sample_offer("1"))
GONE = '{"Status":"client gone"}'


@pytest.fixture
def record(stage) -> dict:
    """An offer that is matched with the proxy."""
    stage.expect_proxies()
    record = stage.received(message())
    offer.handler(batch(record), None)
    assert '"client match"' in proxies.handler(event("poll"), None)["body"]
    return record


def test_an_answer_reaches_its_client_byte_for_byte(stage, record):
    assert stage.in_flight() == 1

    response = handler(event("answer"), None)

    assert (response["statusCode"], response["body"]) == (200, '{"Status":"success"}')
    assert response["headers"] == {"Content-Type": TEXT, **CROSS_ORIGIN}
    assert stage.replies(client_id(record)) == ['{"answer":' + json.dumps(ANSWER) + "}"]
    assert stage.in_flight() == 0
    assert stage.history()[-2:] == [("proxy_answer", "success"), ("answer", "delivered")]


def test_an_answer_to_a_client_with_a_deleted_queue_is_refused(stage, record, sqs):
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=f"snowflake-client-{client_id(record)}")["QueueUrl"])

    assert handler(event("answer"), None)["body"] == GONE


def test_an_answer_that_breaks_the_protocol_is_a_bad_request(stage):
    response = handler(request("answer", body="not json, though it has a=candidate"), None)

    assert (response["statusCode"], response["body"]) == (400, "")
    assert stage.history() == [("bad_input", "rejected")]
