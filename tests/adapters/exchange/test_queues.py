"""The SQS queues of exchanges: created with dead-letter queues, changed, counted and deleted."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.aws.exchange.queues import SqsExchangeQueues
from signalbox.aws.shared.managed_queues import ForeignQueue, OwnQueues
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.exchange.model.ports import CreatedQueue, QueueSpec
from signalbox.exchange.model.records import QueueSize, ResourceKind, ResourceRef
from signalbox.queues import QueueName
from tests.adapters.shared.stubs import ARNS, KEY, URLS, StubbedClient, attributes_of, error, tags_of

NAME, DEAD = QueueName("xpublic"), QueueName("xpublic-dlq")
WANTED = QueueSpec(NAME, ResourceRef(ResourceKind.EXCHANGE, "xpublic"), timedelta(days=4), timedelta(seconds=180), 5)
FIFO = replace(WANTED, name=QueueName("xs_a.fifo"), resource=ResourceRef(ResourceKind.EXCHANGE, "xs_a.fifo"))


@pytest.fixture
def queues(sqs) -> SqsExchangeQueues:
    return SqsExchangeQueues(OwnQueues(sqs, URLS, ARNS, sleep=lambda _: None), stage="signalbox", key_arn=KEY)


def failing(queues: SqsExchangeQueues, call: str, *answers: object) -> SqsExchangeQueues:
    return replace(queues, queues=replace(queues.queues, sqs=StubbedClient(queues.queues.sqs, call, *answers)))


def test_a_queue_is_made_with_its_dead_letter_queue(queues: SqsExchangeQueues, sqs) -> None:
    assert queues.make(WANTED) == CreatedQueue(NAME, URLS + NAME)

    made, dead = attributes_of(sqs, NAME), attributes_of(sqs, DEAD)
    assert (made["MessageRetentionPeriod"], made["VisibilityTimeout"]) == ("345600", "180")
    assert json.loads(made["RedrivePolicy"]) == {"deadLetterTargetArn": ARNS + DEAD, "maxReceiveCount": 5}
    assert dead["MessageRetentionPeriod"] == "1209600"


def test_sqs_dead_letters_nothing_of_a_queue_without_a_limit_of_receives(queues: SqsExchangeQueues, sqs) -> None:
    queues.make(replace(WANTED, maximum_receives=None))

    assert "RedrivePolicy" not in attributes_of(sqs, NAME)


@pytest.mark.parametrize("name", [NAME, DEAD])
def test_both_are_encrypted_and_take_nothing_without_tls(queues: SqsExchangeQueues, sqs, name: str) -> None:
    queues.make(WANTED)

    made = attributes_of(sqs, name)
    assert (made["KmsMasterKeyId"], made["KmsDataKeyReusePeriodSeconds"]) == (KEY, "3600")
    (statement,) = json.loads(made["Policy"])["Statement"]
    assert statement == {
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": "sqs:*",
        "Resource": ARNS + name,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def test_the_tags_say_whose_both_are(queues: SqsExchangeQueues, sqs) -> None:
    queues.make(WANTED)

    expected = {"signalbox:stage": "signalbox", "signalbox:capability": "exchange", "signalbox:name": "xpublic"}
    assert tags_of(sqs, NAME) == tags_of(sqs, DEAD) == expected


@pytest.mark.parametrize("declared", ["q_alice.wéather", "q_alice." + "x" * 250])
def test_a_name_that_is_no_valid_tag_is_stored_as_its_digest(queues: SqsExchangeQueues, sqs, declared: str) -> None:
    queues.make(replace(WANTED, resource=ResourceRef(ResourceKind.QUEUE, declared)))

    digest = tags_of(sqs, NAME)["signalbox:name"]
    assert digest.startswith("sha256:")
    assert len(digest) == 71


def test_an_ordered_exchange_has_queues_that_keep_order_by_key(queues: SqsExchangeQueues, sqs) -> None:
    queues.make(FIFO)

    for name in (FIFO.name, "xs_a-dlq.fifo"):
        made = attributes_of(sqs, name)
        assert (made["FifoQueue"], made["ContentBasedDeduplication"]) == ("true", "false")
        assert (made["DeduplicationScope"], made["FifoThroughputLimit"]) == ("messageGroup", "perMessageGroupId")


@pytest.mark.parametrize("wanted", [WANTED, FIFO])
def test_made_again_a_queue_has_the_new_settings_and_its_messages(queues, sqs, wanted: QueueSpec) -> None:
    queues.make(wanted)
    ordered = {"MessageGroupId": "a", "MessageDeduplicationId": "1"} if wanted.resource.is_ordered else {}
    sqs.send_message(QueueUrl=URLS + wanted.name, MessageBody="kept", **ordered)

    for _ in range(2):
        queues.make(replace(wanted, retention=timedelta(seconds=90), maximum_receives=2))

    made = attributes_of(sqs, wanted.name)
    assert (made["MessageRetentionPeriod"], json.loads(made["RedrivePolicy"])["maxReceiveCount"]) == ("90", 2)
    assert queues.sizes([wanted.name])[wanted.name].total == 1


def test_settings_of_a_queue_on_record_change_without_a_call_for_tags(queues: SqsExchangeQueues, sqs) -> None:
    """AWS allows five such calls a second, which one user's declarations took."""
    queues.make(WANTED)
    without_tags = failing(queues, "list_queue_tags", error("RequestThrottled"))
    changed = replace(WANTED, maximum_receives=2)

    without_tags.make(replace(changed, is_on_record=True))

    assert json.loads(attributes_of(sqs, NAME)["RedrivePolicy"])["maxReceiveCount"] == 2
    with pytest.raises(EffectFailed):
        without_tags.make(replace(changed, maximum_receives=3))


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param({}, id="none"),
        pytest.param({"signalbox:stage": "other", "signalbox:capability": "exchange"}, id="another-stage"),
        pytest.param(
            {"signalbox:stage": "signalbox", "signalbox:capability": "exchange", "signalbox:name": "xpub"},
            id="another-exchange",
        ),
    ],
)
@pytest.mark.parametrize("name", [NAME, DEAD])
def test_a_foreign_queue_is_not_changed(queues: SqsExchangeQueues, sqs, name: str, tags: dict) -> None:
    sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "7"}, tags=tags)

    with pytest.raises(ForeignQueue, match=f"queue '{name}' exists and is not managed"):
        queues.make(WANTED)

    assert attributes_of(sqs, name)["VisibilityTimeout"] == "7"
    assert "KmsMasterKeyId" not in attributes_of(sqs, name)


def test_only_the_queue_that_is_named_is_deleted_and_once(queues: SqsExchangeQueues, sqs) -> None:
    queues.make(WANTED)

    for _ in range(2):
        queues.delete(NAME)

    assert list(queues.sizes([NAME, DEAD])) == [DEAD]


def test_a_queue_names_its_key(queues: SqsExchangeQueues, sqs) -> None:
    queues.make(WANTED)
    sqs.create_queue(QueueName="open")

    assert [queues.key(QueueName(name)) for name in (NAME, "open", "gone")] == [KEY, "", None]


def test_sizes_count_waiting_and_in_flight_messages(queues: SqsExchangeQueues, sqs) -> None:
    queues.make(WANTED)
    for _ in range(2):
        sqs.send_message(QueueUrl=URLS + NAME, MessageBody="a")
    sqs.send_message(QueueUrl=URLS + NAME, MessageBody="a", DelaySeconds=60)
    sqs.receive_message(QueueUrl=URLS + NAME)

    assert queues.sizes([NAME, QueueName("gone")]) == {NAME: QueueSize(waiting=1, in_flight=1, delayed=1)}


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        pytest.param(error("QueueDeletedRecently"), EffectFailed, id="deleted-recently"),
        pytest.param(error("KmsThrottled"), EffectFailed, id="throttled"),
        pytest.param(error("InvalidAttributeValue"), EffectRefused, id="refused"),
    ],
)
def test_temporary_and_permanent_failures_of_sqs_differ(queues, refusal, expected: type[Exception]) -> None:
    with pytest.raises(expected, match=r"queue 'xpublic-dlq'"):
        failing(queues, "create_queue", refusal).make(WANTED)


def test_a_dead_letter_queue_that_sqs_does_not_find_yet_is_used_later(queues: SqsExchangeQueues) -> None:
    made = {"QueueUrl": ""}
    too_new = error("InvalidParameterValue", "Reason: Dead letter target does not exist.")

    created = failing(queues, "create_queue", made, too_new, too_new, made).make(WANTED)

    assert created == CreatedQueue(NAME, URLS + NAME)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("Reason: Dead letter target does not exist.", EffectFailed, id="too-new"),
        pytest.param("Reason: not today.", EffectRefused, id="refused"),
    ],
)
def test_a_dead_letter_queue_may_stay_too_new_to_be_used(queues, message: str, expected: type[Exception]) -> None:
    answers = ({"QueueUrl": ""}, error("InvalidParameterValue", message))

    with pytest.raises(expected, match=message):
        failing(queues, "create_queue", *answers).make(WANTED)


def test_missing_sqs_counters_are_a_temporary_failure(queues: SqsExchangeQueues) -> None:
    with pytest.raises(EffectFailed, match="AccessDenied"):
        failing(queues, "get_queue_attributes", error("AccessDenied")).sizes([NAME])


def test_messages_are_read_and_stay(queues: SqsExchangeQueues, sqs) -> None:
    queues.make(WANTED)
    for number in range(12):
        sqs.send_message(QueueUrl=URLS + DEAD, MessageBody=str(number))

    found = list(queues.peek(QueueName(DEAD), most=100))

    assert sorted(int(one.body) for one in found) == list(range(12))
    assert queues.sizes([QueueName(DEAD)])[QueueName(DEAD)].waiting == 12
    assert 10 <= len(list(queues.peek(QueueName(DEAD), most=10))) < 20


def test_messages_are_read_in_pages_of_which_one_is_in_memory(queues: SqsExchangeQueues, sqs) -> None:
    queues.make(WANTED)
    for number in range(12):
        sqs.send_message(QueueUrl=URLS + DEAD, MessageBody=str(number))

    reading = queues.peek(QueueName(DEAD), most=100)
    next(reading)

    assert queues.sizes([QueueName(DEAD)])[QueueName(DEAD)].in_flight == 10
    reading.close()
    assert queues.sizes([QueueName(DEAD)])[QueueName(DEAD)].in_flight == 0
