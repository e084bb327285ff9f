"""The broker queue and the client queues in SQS: creation, replies, conflicts and deletion."""

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.aws.rendezvous.queues import (
    QueueGone,
    QueueTaken,
    SqsBrokerQueue,
    SqsClientQueues,
    client_queue_attributes,
)
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.aws.shared.temporary_queues import SqsTemporaryQueues
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import STAGE_TAG, QueueUrl, own_tags, queue_name
from signalbox.rendezvous.model.states import ClientId
from signalbox.rendezvous.wire.reply import answer_reply

CLIENT = ClientId("c1")
OURS = own_tags(stage="signalbox", capability="rendezvous")
QUEUES = "https://sqs.us-east-1.amazonaws.com/123456789012"
URL = f"{QUEUES}/snowflake-client-c1"
PREFIX = "arn:aws:sqs:us-east-1:123456789012:snowflake-client-"


class NewQueueLag:
    """An SQS client for which new queues do not exist for some calls, as AWS documents for one second."""

    def __init__(self, sqs, *, failures: int) -> None:
        self.sqs, self.failures = sqs, failures
        self.exceptions = sqs.exceptions
        self.calls = 0

    def __getattr__(self, name: str) -> object:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.exceptions.QueueDoesNotExist({"Error": {"Code": "QueueDoesNotExist"}}, name)
        return getattr(self.sqs, name)


@pytest.fixture
def queues(sqs) -> SqsClientQueues:
    return client_queues(sqs)


def client_queues(sqs) -> SqsClientQueues:
    url_prefix = f"{QUEUES}/snowflake-client-"
    return SqsClientQueues(sqs, arn_prefix=PREFIX, url_prefix=url_prefix, stage="signalbox", sleep=lambda _: None)


def test_a_client_queue_has_its_tags_and_its_policy(queues: SqsClientQueues, sqs) -> None:
    assert queues.create(CLIENT, message_id="m1")

    url = sqs.get_queue_url(QueueName="snowflake-client-c1")["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert url == URL
    assert json.loads(attributes["Policy"])["Statement"][0]["Resource"] == PREFIX + "c1"
    assert attributes["MessageRetentionPeriod"] == "300"
    (refusal,) = json.loads(attributes["Policy"])["Statement"]
    assert (refusal["Effect"], refusal["Resource"]) == ("Deny", attributes["QueueArn"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"]["signalbox:capability"] == "rendezvous"


def test_a_redelivered_offer_gets_the_same_client_queue_and_a_copy_does_not(queues: SqsClientQueues) -> None:
    """SQS refuses to create an existing queue with other attributes; one of them depends on the message."""
    assert queues.create(CLIENT, message_id="m1")
    assert queues.create(CLIENT, message_id="m1")
    assert not queues.create(CLIENT, message_id="m2")


def test_the_longest_reply_fits_into_a_client_queue_of_any_message() -> None:
    """A proxy's message has at most 100,000 bytes, and each of them may be a quote."""
    sizes = {
        int(client_queue_attributes(PREFIX, message_id=f"m{n}", stage="signalbox")["MaximumMessageSize"])
        for n in range(2000)
    }

    assert min(sizes) > 200_100
    assert len(sizes) > 1950


def test_an_offer_whose_client_queue_is_deleted_at_that_moment_comes_again(queues: SqsClientQueues, sqs) -> None:
    queues.create(CLIENT, message_id="m1")
    other = boto3.client("sqs")
    event = "before-call.sqs.GetQueueAttributes"
    sqs.meta.events.register(event, lambda **_: other.delete_queue(QueueUrl=URL) and None)

    with pytest.raises(EffectFailed, match="is being deleted"):
        queues.create(CLIENT, message_id="m2")


def test_an_offer_whose_client_queue_was_just_deleted_is_not_tried_again(queues: SqsClientQueues, sqs) -> None:
    """SQS refuses the name for a minute, and the client gives up after five seconds without its queue."""

    def refuse(**_: object) -> None:
        raise sqs.exceptions.QueueDeletedRecently({"Error": {"Code": "QueueDeletedRecently"}}, "CreateQueue")

    sqs.meta.events.register("before-call.sqs.CreateQueue", refuse)

    with pytest.raises(QueueGone, match="less than a minute ago"):
        queues.create(CLIENT, message_id="m1")


@pytest.mark.parametrize(
    ("attributes", "tags"),
    [
        ({"MessageRetentionPeriod": "1209600"}, {}),
        (client_queue_attributes(PREFIX + "c1", message_id="m1", stage="other"), OURS | {STAGE_TAG: "other"}),
    ],
    ids=["other attributes", "another stage"],
)
def test_a_foreign_queue_with_a_client_queues_name_is_not_used(
    queues: SqsClientQueues, sqs, attributes: dict, tags: dict
) -> None:
    sqs.create_queue(QueueName="snowflake-client-c1", Attributes=attributes, tags=tags)

    with pytest.raises(QueueTaken, match="not a client queue of ours"):
        queues.create(CLIENT, message_id="m1")


def test_a_client_id_that_comes_again_makes_no_call_about_tags(queues: SqsClientQueues, sqs) -> None:
    """AWS allows an account five a second, and who has the shared key could use them up with 15 offers a second."""
    called: list[str] = []
    queues.create(CLIENT, message_id="m1")
    sqs.meta.events.register("before-call.sqs", lambda model, **_: called.append(model.name))

    assert not queues.create(CLIENT, message_id="m2")

    assert called == ["CreateQueue", "GetQueueAttributes"]


def test_a_reply_is_retried_while_the_queue_is_too_new(queues: SqsClientQueues, sqs) -> None:
    """Upstream loses the answer: it ignores the result of the send."""
    queues.create(CLIENT, message_id="m1")

    client_queues(NewQueueLag(sqs, failures=2)).send(CLIENT, "reply")

    assert [m["Body"] for m in sqs.receive_message(QueueUrl=URL)["Messages"]] == ["reply"]


def test_an_answer_with_characters_that_sqs_refuses_arrives(queues: SqsClientQueues, sqs) -> None:
    """Otherwise any proxy could have an offer come again until its retention ends."""
    queues.create(CLIENT, message_id="m1")

    queues.send(CLIENT, answer_reply("a\ufffe\uffff"))

    (message,) = sqs.receive_message(QueueUrl=URL)["Messages"]
    assert message["Body"] == answer_reply("a\ufffd\ufffd")


def test_a_queue_that_never_appears_raises_queue_gone(queues: SqsClientQueues, sqs) -> None:
    with pytest.raises(QueueGone):
        queues.send(CLIENT, "reply")


def test_a_queue_with_a_reply_is_not_empty_even_after_the_client_received_it(queues: SqsClientQueues, sqs) -> None:
    queues.create(CLIENT, message_id="m1")
    assert queues.is_empty(CLIENT)

    queues.send(CLIENT, "reply")
    assert not queues.is_empty(CLIENT)

    sqs.receive_message(QueueUrl=URL)
    assert not queues.is_empty(CLIENT)


def test_a_queue_that_is_too_new_is_asked_again_whether_it_is_empty(queues: SqsClientQueues, sqs) -> None:
    queues.create(CLIENT, message_id="m1")

    assert client_queues(NewQueueLag(sqs, failures=2)).is_empty(CLIENT)


def test_a_deleted_queue_needs_no_reply(queues: SqsClientQueues, sqs) -> None:
    queues.create(CLIENT, message_id="m1")
    sqs.delete_queue(QueueUrl=URL)

    assert not queues.is_empty(CLIENT)


def test_an_offer_message_in_flight_is_deleted_by_its_receipt_handle(sqs) -> None:
    url = sqs.create_queue(QueueName="broker", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="offer")
    handle = sqs.receive_message(QueueUrl=url)["Messages"][0]["ReceiptHandle"]

    SqsBrokerQueue(sqs, url).delete(handle)

    assert not sqs.receive_message(QueueUrl=url).get("Messages")


def test_a_deleted_broker_queue_is_created_again_with_its_attributes(sqs) -> None:
    broker, arn = SqsBrokerQueue(sqs, "unused"), "arn:aws:sqs:us-east-1:123456789012:snowflake-broker"

    broker.ensure(arn, {"MessageRetentionPeriod": "300"})
    broker.ensure(arn, {"MessageRetentionPeriod": "400"})

    url = sqs.get_queue_url(QueueName="snowflake-broker")["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["MessageRetentionPeriod"] == "300"
    (refusal,) = json.loads(attributes["Policy"])["Statement"]
    assert (refusal["Effect"], refusal["Resource"]) == ("Deny", attributes["QueueArn"])


def test_the_sweep_lists_queues_with_the_prefix_with_tags_and_age(queues: SqsClientQueues, sqs) -> None:
    queues.create(CLIENT, message_id="m1")
    sqs.create_queue(QueueName="snowflake-client-untagged")
    sqs.create_queue(QueueName="other")

    temporary = SqsTemporaryQueues(sqs, TagCalls())
    found = {queue_name(url): url for url in temporary.listed("snowflake-client-")}

    assert set(found) == {"snowflake-client-c1", "snowflake-client-untagged"}
    assert temporary.tags(found["snowflake-client-untagged"]) == {}
    assert temporary.tags(found["snowflake-client-c1"]) == OURS
    modified_at = temporary.modified_at(found["snowflake-client-c1"])
    assert modified_at is not None
    assert abs(datetime.now(UTC) - modified_at) < timedelta(minutes=1)


def test_deleting_a_missing_queue_does_nothing(sqs) -> None:
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    temporary = SqsTemporaryQueues(sqs, TagCalls())

    temporary.delete(url)
    temporary.delete(url)

    assert not sqs.list_queues().get("QueueUrls")


def test_a_client_queue_is_deleted_once(queues: SqsClientQueues, sqs) -> None:
    queues.create(CLIENT, message_id="m1")

    queues.delete(CLIENT)
    queues.delete(CLIENT)

    assert not sqs.list_queues().get("QueueUrls")


def test_old_queues_of_the_stage_are_deleted(queues: SqsClientQueues, sqs) -> None:
    now = datetime.now(UTC)
    queues.create(CLIENT, message_id="m1")
    upstreams = sqs.create_queue(QueueName="snowflake-client-of-upstream", Attributes={"MessageRetentionPeriod": "300"})
    replace(queues, stage="other").create(ClientId("of-another-stage"), message_id="m2")
    others = {upstreams["QueueUrl"], f"{QUEUES}/snowflake-client-of-another-stage"}

    assert not queues.delete_old(QueueUrl(URL), before=now - timedelta(minutes=1))
    assert not any(queues.delete_old(QueueUrl(other), before=now + timedelta(minutes=1)) for other in others)
    assert queues.delete_old(QueueUrl(URL), before=now + timedelta(minutes=1))
    assert not queues.delete_old(QueueUrl(URL), before=now + timedelta(minutes=1))
    assert set(sqs.list_queues()["QueueUrls"]) == others


@pytest.mark.parametrize("operation", ["GetQueueAttributes", "DeleteQueue"])
def test_a_queue_that_denies_a_call_does_not_end_the_sweep(queues: SqsClientQueues, sqs, operation: str) -> None:
    def deny(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, operation)

    queues.create(CLIENT, message_id="m1")
    sqs.meta.events.register(f"before-call.sqs.{operation}", deny)

    assert not queues.delete_old(QueueUrl(URL), before=datetime.now(UTC) + timedelta(minutes=1))


def test_a_queue_deleted_during_the_listing_has_no_age_and_no_tags(sqs) -> None:
    url = QueueUrl(sqs.create_queue(QueueName="snowflake-client-a")["QueueUrl"])
    sqs.delete_queue(QueueUrl=url)
    temporary = SqsTemporaryQueues(sqs, TagCalls())

    assert temporary.modified_at(url) is None
    assert temporary.tags(url) == {}


def test_a_queue_that_sqs_does_not_delete_is_named(sqs) -> None:
    class Refusing:
        exceptions = sqs.exceptions

        def delete_queue(self, **_: object) -> object:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteQueue")

    with pytest.raises(EffectRefused, match="AccessDenied at DeleteQueue of snowflake-client-a: no"):
        SqsTemporaryQueues(Refusing(), TagCalls()).delete(QueueUrl(f"{QUEUES}/snowflake-client-a"))


def test_parked_offers_are_hidden_together_for_whole_seconds(sqs, broker: SqsBrokerQueue) -> None:
    handles = [received(sqs, broker) for _ in range(2)]
    calls = counted(sqs)

    broker.hide({handles[0]: timedelta(seconds=9.1), handles[1]: timedelta(seconds=-1)})

    assert calls == [
        [
            {"Id": "0", "ReceiptHandle": handles[0], "VisibilityTimeout": 10},
            {"Id": "1", "ReceiptHandle": handles[1], "VisibilityTimeout": 1},
        ]
    ]


def test_an_offer_that_cannot_be_hidden_does_not_hinder_the_others(
    sqs, broker: SqsBrokerQueue, caplog: pytest.LogCaptureFixture
) -> None:
    handle = received(sqs, broker)

    with caplog.at_level(logging.INFO):
        broker.hide({"unknown": timedelta(seconds=9), handle: timedelta(seconds=9)})

    assert [record.levelname for record in caplog.records if "keeps the visibility" in record.message] == ["INFO"]


def test_a_failed_call_to_hide_offers_is_logged_and_not_raised(sqs, caplog: pytest.LogCaptureFixture) -> None:
    """The messages are delivered again after three seconds, and are hidden then."""
    with caplog.at_level(logging.ERROR):
        SqsBrokerQueue(sqs, queue_url=f"{QUEUES}/gone").hide({"handle": timedelta(seconds=9)})

    assert [record.message for record in caplog.records] == [f"1 messages keep the visibility timeout of {QUEUES}/gone"]


@pytest.fixture
def broker(sqs) -> SqsBrokerQueue:
    return SqsBrokerQueue(sqs, queue_url=sqs.create_queue(QueueName="snowflake-broker")["QueueUrl"])


def received(sqs, broker: SqsBrokerQueue) -> str:
    sqs.send_message(QueueUrl=broker.queue_url, MessageBody="offer")
    return str(sqs.receive_message(QueueUrl=broker.queue_url)["Messages"][0]["ReceiptHandle"])


def counted(sqs) -> list[list[dict[str, object]]]:
    """Return the list to which each later call to hide messages adds its entries."""
    calls: list[list[dict[str, object]]] = []
    event = "provide-client-params.sqs.ChangeMessageVisibilityBatch"
    sqs.meta.events.register(event, lambda params, **_: calls.append(params["Entries"]))
    return calls
