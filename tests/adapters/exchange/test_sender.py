"""The SQS sender of the control plane: single messages, and many in order."""

import pytest

from signalbox.aws.exchange.sender import SqsExchangeSender
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.messages import Attribute, Message, MessageId
from signalbox.queues import QueueName
from tests.adapters.shared.stubs import URLS, StubbedClient, error
from tests.fakes.backoff import AT_ONCE

NAME, FIFO = QueueName("xpublic"), QueueName("q_a.fifo")


def message(number: int, *, group: str | None = None) -> Message:
    system = {} if group is None else {"MessageGroupId": group, "MessageDeduplicationId": str(number)}
    attributes = {"topic": Attribute("String", "a.b"), "raw": Attribute("Binary", base64="AAE=")}
    return Message(MessageId(f"m{number}"), f"body {number}", attributes, system, {})


@pytest.fixture
def sender(sqs) -> SqsExchangeSender:
    sqs.create_queue(QueueName=NAME)
    sqs.create_queue(QueueName=FIFO, Attributes={"FifoQueue": "true"})
    return SqsExchangeSender(sqs, URLS)


def received(sqs, name: str) -> list[dict]:
    page = sqs.receive_message(QueueUrl=URLS + name, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
    return page.get("Messages", [])


def failing(sender: SqsExchangeSender, *answers: object) -> SqsExchangeSender:
    return SqsExchangeSender(StubbedClient(sender.sqs, "send_message_batch", *answers), URLS, AT_ONCE)


def failure(entry_id: str, *, is_ours: bool) -> dict[str, object]:
    return {"Failed": [{"Id": entry_id, "Code": "Some", "SenderFault": is_ours, "Message": "no"}]}


def test_a_message_is_sent_with_its_attributes_and_its_id_returned(sender: SqsExchangeSender, sqs) -> None:
    message_id = sender.send(NAME, message(1))

    (found,) = received(sqs, NAME)
    assert (found["MessageId"], found["Body"]) == (message_id, "body 1")
    assert found["MessageAttributes"]["topic"]["StringValue"] == "a.b"
    assert found["MessageAttributes"]["raw"]["BinaryValue"] == b"\0\1"


@pytest.mark.parametrize(
    ("is_ours", "expected"), [(True, EffectRefused), (False, EffectFailed)], ids=["sender", "service"]
)
def test_sender_faults_are_final_and_other_failures_retryable(sender, is_ours, expected) -> None:
    with pytest.raises(expected, match="Some at SendMessageBatch of queue 'xpublic': no"):
        failing(sender, failure("0", is_ours=is_ours)).send(NAME, message(1))


def test_a_queue_that_is_gone_is_a_refusal(sender: SqsExchangeSender) -> None:
    with pytest.raises(EffectRefused, match="queue 'gone'"):
        sender.send(QueueName("gone"), message(1))


def test_a_queue_that_does_not_answer_is_for_later(sender: SqsExchangeSender) -> None:
    with pytest.raises(EffectFailed):
        failing(sender, error("InternalError", status=500)).deliver(NAME, [message(1)])


def test_many_are_delivered_ten_a_call_and_in_order(sender: SqsExchangeSender, sqs) -> None:
    messages = [message(number, group="a") for number in range(12)]

    assert sender.deliver(FIFO, messages) == []

    found = [one["Body"] for one in received(sqs, FIFO)]
    assert found == [one.body for one in messages[:10]]


def test_messages_that_are_not_accepted_are_returned(sender: SqsExchangeSender) -> None:
    messages = [message(number) for number in range(12)]

    left = failing(sender, failure("3", is_ours=True), {}).deliver(NAME, messages)

    assert left == [messages[3]]


def test_behind_one_that_an_ordered_queue_did_not_take_no_call_is_made(sender: SqsExchangeSender) -> None:
    messages = [message(number, group="ab"[number % 2]) for number in range(8)]
    taken = {"Successful": [{"Id": "0", "MessageId": "n"}]}

    left = failing(sender, taken, failure("0", is_ours=True), taken).deliver(FIFO, messages)

    assert left == [messages[2], messages[4], messages[6]]


def test_no_call_holds_two_messages_of_a_group(sender: SqsExchangeSender) -> None:
    stub = StubbedClient(sender.sqs, "send_message_batch", {})

    SqsExchangeSender(stub, URLS, AT_ONCE).deliver(FIFO, [message(number, group="aab"[number]) for number in range(3)])

    calls = [[entry["MessageGroupId"] for entry in call["Entries"]] for call in stub.calls]
    assert calls == [["a", "b"], ["a"]]


@pytest.mark.parametrize("code", ["KMS.ThrottlingException", "KmsThrottled"])
def test_throttling_by_kms_is_retryable_although_sqs_calls_it_the_senders_fault(sender, code) -> None:
    throttled = {"Failed": [{"Id": "0", "Code": code, "SenderFault": True, "Message": "no"}]}

    with pytest.raises(EffectFailed, match=code):
        failing(sender, throttled).send(NAME, message(1))
