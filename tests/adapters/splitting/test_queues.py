"""Temporary queues on SQS: creation, counters, return in order, and AWS's errors."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import EndpointConnectionError

from signalbox.aws.splitting.queues import SqsSplitQueues, own_tags
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import Sample
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Phase, Replay, SplitQueue, SplitSession
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import SentBack
from tests.adapters.shared.stubs import ARNS, URLS, StubbedClient, attributes_of, error
from tests.fakes.backoff import AT_ONCE
from tests.fakes.rendezvous import START

ORIGINAL, TEMPORARY = QueueName("memes"), QueueName("mirrord-tmp-x-memes")
FIFO, TEMPORARY_FIFO = QueueName("memes.fifo"), QueueName("mirrord-tmp-x-memes.fifo")
TARGET = Target.parse("lambda/meme-app")
SPLIT_QUEUE = SplitQueue(QueueId("memes"), ORIGINAL, TEMPORARY, timedelta(seconds=30), tags=(("team", "cats"),))
SPLIT_FIFO = replace(SPLIT_QUEUE, original=FIFO, deployed=TEMPORARY_FIFO)
SESSION = SplitSession(
    session_id=SessionId("me-1"),
    owner="me@laptop",
    config="{}",
    started_at=START,
    heartbeat_at=START,
    phase=Phase.STARTING,
    since=START,
    queues={ORIGINAL: TEMPORARY},
)


@pytest.fixture
def queues(sqs) -> SqsSplitQueues:
    return SqsSplitQueues(sqs, URLS, stage="signalbox", backoff=AT_ONCE)


def failing(queues: SqsSplitQueues, call: str, answer: object) -> SqsSplitQueues:
    return replace(queues, sqs=StubbedClient(queues.sqs, call, answer))


def message(body: str, **system: str) -> Message:
    return Message.parse({"MessageId": f"id-{body}", "Body": body, "Attributes": system})


def test_a_temporary_queue_has_the_settings_of_its_original(queues: SqsSplitQueues, sqs) -> None:
    settings = {"VisibilityTimeout": "77", "ReceiveMessageWaitTimeSeconds": "3"}
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage"}],
    }
    policy["Statement"][0]["Resource"] = ARNS + ORIGINAL
    sqs.create_queue(QueueName=ORIGINAL, Attributes={**settings, "Policy": json.dumps(policy)})

    notes = queues.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=None)

    made = attributes_of(sqs, TEMPORARY)
    assert {name: made[name] for name in settings} == settings
    assert json.loads(made["Policy"])["Statement"][0]["Resource"] == ARNS + TEMPORARY
    assert notes == ()


def test_a_fifo_queues_temporary_queue_is_a_fifo_queue(queues: SqsSplitQueues, sqs) -> None:
    settings = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    sqs.create_queue(QueueName=FIFO, Attributes=settings)

    queues.create(TEMPORARY_FIFO, SPLIT_FIFO, target=TARGET, session=None)

    made = attributes_of(sqs, TEMPORARY_FIFO)
    assert {name: made[name] for name in settings} == settings


def test_a_queue_is_tagged_with_its_session_and_owner(queues: SqsSplitQueues, sqs) -> None:
    sqs.create_queue(QueueName=ORIGINAL, tags={"team": "dogs", "cost": "1"})

    queues.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=SESSION)

    assert sqs.list_queue_tags(QueueUrl=URLS + TEMPORARY)["Tags"] == {
        "team": "cats",
        "cost": "1",
        "signalbox:stage": "signalbox",
        "signalbox:capability": "splitting",
        "signalbox:target": "lambda/meme-app",
        "signalbox:session": "me-1",
        "signalbox:owner": "me@laptop",
    }


def test_a_tag_has_only_allowed_characters() -> None:
    odd = replace(SESSION, owner="mé (äh)\n" + "x" * 300)

    tags = own_tags(stage="signalbox", target=TARGET, session=odd)

    assert tags["signalbox:owner"].startswith("mé _äh__xxx")
    assert len(tags["signalbox:owner"]) == 256


def test_the_deployed_consumers_queue_has_no_session(queues: SqsSplitQueues, sqs) -> None:
    tags = own_tags(stage="signalbox", target=TARGET, session=None)

    assert set(tags) == {"signalbox:stage", "signalbox:capability", "signalbox:target"}


@pytest.fixture
def original_with_redrive(sqs) -> None:
    sqs.create_queue(QueueName="dead")
    redrive = json.dumps({"deadLetterTargetArn": ARNS + "dead", "maxReceiveCount": 3})
    sqs.create_queue(QueueName=ORIGINAL, Attributes={"RedrivePolicy": redrive})


def test_the_dead_letter_queue_of_the_original_is_copied(queues: SqsSplitQueues, original_with_redrive: None) -> None:
    notes = queues.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=None)

    redrive = json.loads(attributes_of(queues.sqs, TEMPORARY)["RedrivePolicy"])
    assert redrive["deadLetterTargetArn"] == ARNS + "dead"
    assert notes == ()


@pytest.mark.parametrize("given", [{"stolen": frozenset()}, {"replay": Replay(START, START, {})}])
def test_a_copy_never_becomes_a_dead_letter_of_the_original(queues: SqsSplitQueues, original_with_redrive, given):
    queues.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=replace(SESSION, **given))

    assert "RedrivePolicy" not in attributes_of(queues.sqs, TEMPORARY)


class DeadLettersAnswer(StubbedClient):
    """An SQS client that may not read the dead-letter queue."""

    def respond(self, **arguments: object) -> object:
        if str(arguments["QueueUrl"]).endswith("/dead"):
            return super().respond(**arguments)
        return self.client.get_queue_attributes(**arguments)


# Unknown to moto.
OTHERS_ALLOWED = json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [ARNS + ORIGINAL]})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            {"Attributes": {"RedriveAllowPolicy": OTHERS_ALLOWED}},
            "does not accept messages from temporary queues (redrivePermission byQueue)",
        ),
        (error("AccessDenied"), f"the redrive allow policy of {ARNS}dead cannot be read (AccessDenied)"),
    ],
    ids=["excluded", "unreadable"],
)
def test_a_dead_letter_queue_that_cannot_be_used_is_left_out_with_a_note(
    queues: SqsSplitQueues, original_with_redrive: None, answer: object, why: str
) -> None:
    closed = replace(queues, sqs=DeadLettersAnswer(queues.sqs, "get_queue_attributes", answer))

    (note,) = closed.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=None)

    assert "RedrivePolicy" not in attributes_of(queues.sqs, TEMPORARY)
    assert why in note


def test_a_dead_letter_queue_is_not_left_out_because_sqs_is_busy(
    queues: SqsSplitQueues, original_with_redrive: None
) -> None:
    busy = replace(queues, sqs=DeadLettersAnswer(queues.sqs, "get_queue_attributes", error("RequestThrottled")))

    with pytest.raises(EffectFailed, match=r"RequestThrottled.*'dead'"):
        busy.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=None)


def test_a_queue_that_is_there_is_used_also_when_its_original_has_changed(queues: SqsSplitQueues, sqs) -> None:
    sqs.create_queue(QueueName=ORIGINAL)
    queues.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=SESSION)
    sqs.set_queue_attributes(QueueUrl=URLS + ORIGINAL, Attributes={"VisibilityTimeout": "99"})

    queues.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=SESSION)

    (url,) = sqs.list_queues(QueueNamePrefix="mirrord-")["QueueUrls"]
    assert url.endswith(f"/123456789012/{TEMPORARY}")
    assert attributes_of(sqs, TEMPORARY)["VisibilityTimeout"] == "30"


def test_a_foreign_queue_of_that_name_is_refused(queues: SqsSplitQueues, sqs) -> None:
    sqs.create_queue(QueueName=ORIGINAL)
    sqs.create_queue(QueueName=TEMPORARY, Attributes={"VisibilityTimeout": "99"})

    with pytest.raises(EffectRefused, match=f"at CreateQueue of queue '{TEMPORARY}'"):
        queues.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=None)


def test_a_deleted_original_is_a_refusal(queues: SqsSplitQueues) -> None:
    with pytest.raises(EffectRefused, match="NonExistentQueue at GetQueueAttributes of queue 'memes'"):
        queues.create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=None)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(error("AccessDenied", status=403), EffectRefused, id="denied"),
        pytest.param(error("InvalidAttributeValue"), EffectRefused, id="invalid"),
        pytest.param(error("RequestThrottled", status=403), EffectFailed, id="throttled"),
        pytest.param(error("InternalError", status=500), EffectFailed, id="broken"),
        pytest.param(error("Slow", status=429), EffectFailed, id="too-many"),
        pytest.param(EndpointConnectionError(endpoint_url="https://sqs"), EffectFailed, id="no-answer"),
    ],
)
def test_temporary_failures_differ_from_refusals(
    queues: SqsSplitQueues, sqs, answer: Exception, expected: type[Exception]
) -> None:
    sqs.create_queue(QueueName=ORIGINAL)

    with pytest.raises(expected, match=TEMPORARY):
        failing(queues, "create_queue", answer).create(TEMPORARY, SPLIT_QUEUE, target=TARGET, session=None)


def test_deleting_an_absent_queue_is_ignored(queues: SqsSplitQueues, sqs) -> None:
    sqs.create_queue(QueueName=TEMPORARY)

    queues.delete(TEMPORARY)
    queues.delete(TEMPORARY)

    assert queues.observe([TEMPORARY], now=START) == {}


def test_a_queue_is_observed_with_its_age_and_counters(queues: SqsSplitQueues, sqs) -> None:
    """SQS returns the second of creation, and a queue must not seem older than it is."""
    before = datetime.now(UTC)
    sqs.create_queue(QueueName=TEMPORARY)
    for body in ("a", "b", "c"):
        sqs.send_message(QueueUrl=URLS + TEMPORARY, MessageBody=body)
    sqs.send_message(QueueUrl=URLS + TEMPORARY, MessageBody="later", DelaySeconds=100)
    sqs.receive_message(QueueUrl=URLS + TEMPORARY, VisibilityTimeout=30)

    found = queues.observe([TEMPORARY, QueueName("mirrord-gone")], now=START)

    queue, sample = found[TEMPORARY]
    assert set(found) == {TEMPORARY}
    assert sample == Sample(START, waiting=3, in_flight=1)
    assert before <= queue.created_at <= datetime.now(UTC) + timedelta(seconds=1)


def test_a_queue_that_cannot_be_read_does_not_count_as_deleted(queues: SqsSplitQueues) -> None:
    with pytest.raises(EffectFailed, match=f"AccessDenied at TheCall of queue '{TEMPORARY}': no"):
        failing(queues, "get_queue_attributes", error("AccessDenied")).observe([TEMPORARY], now=START)


def test_messages_are_received_with_all_attributes(queues: SqsSplitQueues, sqs) -> None:
    sqs.create_queue(QueueName=TEMPORARY)
    attributes = {
        "n": {"DataType": "Number", "StringValue": "1"},
        "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    header = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}
    sqs.send_message(
        QueueUrl=URLS + TEMPORARY, MessageBody="body", MessageAttributes=attributes, MessageSystemAttributes=header
    )

    ((received, handle),) = queues.receive(TEMPORARY)

    assert received.body == "body"
    assert received.attributes["n"].text == "1"
    assert received.attributes["b"].base64 == "AP8="
    assert received.document["MessageAttributes"]["b"]["BinaryValue"] == "AP8="
    assert received.system_attributes["AWSTraceHeader"] == "Root=1"
    assert received.first_received_at is not None
    assert handle


def test_receive_overrides_the_queues_times(queues: SqsSplitQueues) -> None:
    """A copied visibility of zero would deliver a message twice; a copied wait of 20 s would use up the call."""
    answering = StubbedClient(queues.sqs, "receive_message", {})

    assert replace(queues, sqs=answering).receive(TEMPORARY) == ()

    (call,) = answering.calls
    assert (call["VisibilityTimeout"], call["WaitTimeSeconds"], call["MaxNumberOfMessages"]) == (20, 1, 10)


def test_a_deleted_queue_has_no_messages(queues: SqsSplitQueues) -> None:
    assert queues.receive(TEMPORARY) == ()


def test_received_messages_are_deleted_in_batches_of_ten(queues: SqsSplitQueues, sqs) -> None:
    sqs.create_queue(QueueName=TEMPORARY)
    for number in range(12):
        sqs.send_message(QueueUrl=URLS + TEMPORARY, MessageBody=str(number))
    handles = [handle for _ in range(2) for _, handle in queues.receive(TEMPORARY)]

    queues.remove(TEMPORARY, handles)

    assert len(handles) == 12
    assert queues.observe([TEMPORARY], now=START)[TEMPORARY][1].is_zero


def test_a_failed_deletion_raises_with_its_code(queues: SqsSplitQueues) -> None:
    """The message is redelivered, so its receiver must not treat it as done."""
    answer = {"Failed": [{"Id": "0", "Code": "ReceiptHandleIsInvalid", "SenderFault": True}]}

    with pytest.raises(EffectFailed, match=f"ReceiptHandleIsInvalid at DeleteMessageBatch of queue '{TEMPORARY}'"):
        failing(queues, "delete_message_batch", answer).remove(TEMPORARY, ["handle"])


def test_messages_go_back_in_order(queues: SqsSplitQueues, sqs) -> None:
    sqs.create_queue(QueueName=FIFO, Attributes={"FifoQueue": "true"})
    back = [message(body, MessageGroupId="g", MessageDeduplicationId=f"d-{body}") for body in ("1", "2", "3")]

    sent = queues.send_back(FIFO, back)

    received = queues.receive(FIFO)
    assert sent == SentBack([], {old.message_id: new.message_id for old, (new, _) in zip(back, received, strict=True)})
    assert [one.body for one, _ in received] == ["1", "2", "3"]
    assert {one.group_id for one, _ in received} == {"g"}


def test_a_message_goes_back_without_the_delay_of_its_queue(queues: SqsSplitQueues, sqs) -> None:
    sqs.create_queue(QueueName=ORIGINAL, Attributes={"DelaySeconds": "900"})

    queues.send_back(ORIGINAL, [message("1")])

    assert [one.body for one, _ in queues.receive(ORIGINAL)] == ["1"]


def test_a_message_goes_back_with_its_trace_header(queues: SqsSplitQueues) -> None:
    """The emulators lose it in batches, so the test inspects the request."""
    sending = StubbedClient(queues.sqs, "send_message_batch", {})

    replace(queues, sqs=sending).send_back(ORIGINAL, [message("1", AWSTraceHeader="Root=1")])

    ((entry,),) = [call["Entries"] for call in sending.calls]
    assert entry["MessageSystemAttributes"] == {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}


def test_a_fifo_queue_accepts_a_returned_message(queues: SqsSplitQueues, sqs) -> None:
    """SQS deduplicates for five minutes, including deleted messages."""
    sqs.create_queue(QueueName=FIFO, Attributes={"FifoQueue": "true"})
    sqs.send_message(QueueUrl=URLS + FIFO, MessageBody="1", MessageGroupId="g", MessageDeduplicationId="d")
    ((taken, handle),) = queues.receive(FIFO)
    queues.remove(FIFO, [handle])

    for _ in range(2):
        assert queues.send_back(FIFO, [taken]).left == []

    assert [one.body for one, _ in queues.receive(FIFO)] == ["1"]


def test_attributes_are_returned_unchanged(queues: SqsSplitQueues, sqs) -> None:
    for name in (ORIGINAL, TEMPORARY):
        sqs.create_queue(QueueName=name)
    sqs.send_message(
        QueueUrl=URLS + TEMPORARY,
        MessageBody="x",
        MessageAttributes={
            "b": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
            "n": {"DataType": "Number.int", "StringValue": "1"},
        },
    )

    queues.send_back(ORIGINAL, [received for received, _ in queues.receive(TEMPORARY)])

    (found,) = sqs.receive_message(QueueUrl=URLS + ORIGINAL, MessageAttributeNames=["All"])["Messages"]
    assert found["MessageAttributes"] == {
        "b": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
        "n": {"DataType": "Number.int", "StringValue": "1"},
    }


class RefusingBodies:
    """An SQS client whose SendMessageBatch fails for some bodies."""

    def __init__(self, sqs, *bodies: str) -> None:
        self.sqs, self.bodies = sqs, bodies
        self.sent: list[str] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> object:  # noqa: N803
        failed = [entry["Id"] for entry in Entries if entry["MessageBody"] in self.bodies]
        self.sent += [entry["MessageBody"] for entry in Entries if entry["Id"] not in failed]
        return {"Failed": [{"Id": one, "Code": "InternalError", "SenderFault": False} for one in failed]}


def test_a_group_is_returned_in_order(queues: SqsSplitQueues) -> None:
    back = [
        message(body, MessageGroupId=body[0], MessageDeduplicationId=body) for body in ("a1", "b1", "a2", "b2", "a3")
    ]
    refusing = RefusingBodies(queues.sqs, "a2")

    left = replace(queues, sqs=refusing).send_back(FIFO, back).left

    assert [one.body for one in left] == ["a2", "a3"]
    assert refusing.sent == ["a1", "b1", "b2"]


def test_a_refused_return_raises_with_its_code(queues: SqsSplitQueues) -> None:
    with pytest.raises(EffectFailed, match="InternalError at SendMessageBatch of queue 'memes'"):
        replace(queues, sqs=RefusingBodies(queues.sqs, "1")).send_back(ORIGINAL, [message("1")])


def test_a_failed_call_raises_with_its_code(queues: SqsSplitQueues) -> None:
    denied = failing(queues, "send_message_batch", error("KmsAccessDenied"))

    with pytest.raises(EffectFailed, match="KmsAccessDenied at TheCall of queue 'memes'"):
        denied.send_back(ORIGINAL, [message("1")])
