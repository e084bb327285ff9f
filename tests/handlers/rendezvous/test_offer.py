"""The function `offer`."""

import pytest
from botocore.exceptions import ClientError

from lambdas.rendezvous import wiring
from lambdas.rendezvous.offer import handler
from signalbox.rendezvous.model.states import ClientId
from tests.handlers.billed_calls import recorded_calls
from tests.handlers.recorded_events import batch, client_id, message


def failures(response: dict) -> list[str]:
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


def test_an_offer_is_parked_by_staying_in_flight(stage):
    stage.expect_proxies()
    record = message()

    response = handler(batch(record), None)

    assert response == {"batchItemFailures": [{"itemIdentifier": record["messageId"]}]}
    assert stage.replies(client_id(record)) == []
    assert stage.history() == [("offer", "parked")]


def test_an_offer_that_breaks_the_protocol_is_answered_with_the_reason(stage):
    record = message(body="2.0\n{}")

    assert failures(handler(batch(record), None)) == []
    assert stage.replies(client_id(record)) == ['{"error":"unsupported message version"}']
    assert stage.history() == [("offer", "rejected")]


def test_an_offer_that_was_received_before_gets_a_timeout_after_its_patience(stage):
    stage.expect_proxies()
    record = message(age_seconds=31)
    record["attributes"]["ApproximateReceiveCount"] = "2"

    assert failures(handler(batch(record), None)) == []
    assert stage.replies(client_id(record)) == ['{"error":"timed out waiting for answer!"}']


def test_an_offer_that_is_received_after_its_patience_makes_no_queue(stage):
    with recorded_calls() as calls:
        assert failures(handler(batch(message(age_seconds=31)), None)) == []

    assert [call for call in calls if call.startswith("sqs.")] == []
    assert stage.history() == [("offer", "stale")]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (message(name="offer_without_client_id"), "ClientID is empty"),
        (message(name="offer_binary_client_id"), "ClientID is empty"),
        (message(""), "ClientID is empty"),
        (message("f" * 64), "queue name of 81 characters; SQS allows 1 to 80"),
        (
            message("../x y"),
            "queue name 'snowflake-client-../x y' has characters other than letters, digits, '-' and '_'",
        ),
    ],
    ids=["missing", "Binary", "empty", "too long", "bad characters"],
)
def test_a_message_without_a_usable_client_id_is_dead_lettered_with_its_reason(stage, record, reason):
    response = handler(batch(record), None)

    assert failures(response) == []
    assert stage.dead_letters() == [(record["body"], {"Reason": reason, "OriginalMessageId": record["messageId"]})]
    assert not stage.has_queue("")
    assert stage.history() == [("dead_letter", "dead")]


def test_an_offer_whose_function_was_killed_between_queue_and_record_is_parked(stage):
    """SQS refuses to create the existing queue with other tags, and the offer would become a dead letter."""
    stage.expect_proxies()
    record = message()
    wiring.client_queues().create(ClientId(client_id(record)), message_id=record["messageId"])

    response = handler(batch(record), None)

    assert failures(response) == [record["messageId"]]
    assert (stage.history(), stage.dead_letters()) == ([("offer", "parked")], [])


def test_a_batch_in_which_every_offer_is_parked_is_normal(stage):
    stage.expect_proxies()
    records = [message(f"client-{n}") for n in range(10)]

    assert failures(handler(batch(*records), None)) == [record["messageId"] for record in records]


def test_one_failed_message_does_not_delay_the_others(stage):
    stage.expect_proxies()
    good, buried, broken = message("good"), message(name="offer_without_client_id"), message("broken")
    broken["attributes"]["SentTimestamp"] = "not a number"

    response = handler(batch(broken, good, buried), None)

    assert failures(response) == [broken["messageId"], good["messageId"]]
    assert stage.has_queue("good")
    assert len(stage.dead_letters()) == 1


def test_a_batch_in_which_every_message_fails_fails_the_invocation(stage, rendezvous_table):
    rendezvous_table.delete()

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        handler(batch(message("a"), message("b")), None)


def test_a_redelivered_offer_that_stays_in_flight_is_not_a_failure(stage):
    """SQS may deliver a message twice at once: the batch has no event and no failure."""
    stage.expect_proxies()
    parked, broken = message("parked"), message("broken")
    broken["attributes"]["SentTimestamp"] = "not a number"
    handler(batch(parked), None)

    assert failures(handler(batch(parked, broken), None)) == [parked["messageId"], broken["messageId"]]


def test_a_foreign_queue_with_the_name_of_a_client_queue_gets_no_message(stage, sqs):
    stage.expect_proxies()
    sqs.create_queue(QueueName="snowflake-client-taken")

    handler(batch(message("taken")), None)

    ((_, attributes),) = stage.dead_letters()
    assert attributes["Reason"] == "the queue of client 'taken' exists and is not a client queue of ours"
    assert stage.replies("taken") == []


def test_a_duplicate_of_an_offer_is_deleted(stage):
    stage.expect_proxies()
    record = message("twice")
    copy = record | {"messageId": "the-copy"}

    handler(batch(record), None)

    assert failures(handler(batch(copy), None)) == []
    assert stage.history()[-1] == ("offer", "duplicate")
