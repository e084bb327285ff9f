"""Dead-letter queues on SQS."""

import pytest

from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.errors import EffectFailed
from signalbox.messages import Message, MessageId

MESSAGE = Message(MessageId("m"), "{}", {}, {}, {})


@pytest.fixture
def dead_letters(sqs) -> SqsDeadLetters:
    return SqsDeadLetters(sqs, sqs.create_queue(QueueName="dead")["QueueUrl"])


@pytest.fixture
def ordered_dead_letters(sqs) -> SqsDeadLetters:
    return SqsDeadLetters(sqs, sqs.create_queue(QueueName="dead.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"])


def received(dead_letters: SqsDeadLetters) -> list[tuple[str, str | None, dict[str, str]]]:
    page = dead_letters.sqs.receive_message(
        QueueUrl=dead_letters.queue_url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
    )
    return [
        (
            message["Body"],
            message["Attributes"].get("MessageGroupId"),
            {name: one["StringValue"] for name, one in message["MessageAttributes"].items()},
        )
        for message in page["Messages"]
    ]


def test_a_fifo_queue_keeps_one_copy_of_a_dead_letter_in_its_message_group(ordered_dead_letters) -> None:
    message = Message(MessageId("m"), "{}", {}, {"MessageGroupId": "c1="}, {})

    for _ in range(2):
        ordered_dead_letters.dead_letter(message, reason="because" * 1_000)

    attributes = {"Reason": ("because" * 1_000)[:1_000], "OriginalMessageId": "m"}
    assert received(ordered_dead_letters) == [("{}", "c1=", attributes)]


def test_a_standard_queue_keeps_no_message_group(dead_letters) -> None:
    dead_letters.dead_letter(MESSAGE, reason="why")

    assert received(dead_letters) == [("{}", None, {"Reason": "why", "OriginalMessageId": "m"})]


def test_a_long_body_is_cut_and_further_attributes_are_kept(dead_letters) -> None:
    message = Message(MessageId("m"), "x" * 200_000, {}, {}, {})

    dead_letters.dead_letter(message, reason="why", attributes={"OriginalQueue": "memes"})

    attributes = {"Reason": "why", "OriginalMessageId": "m", "OriginalQueue": "memes"}
    assert received(dead_letters) == [("x" * 100_000, None, attributes)]


def test_an_error_names_the_dead_letter_queue_that_accepts_no_message(dead_letters) -> None:
    missing = SqsDeadLetters(dead_letters.sqs, dead_letters.queue_url + "x")

    with pytest.raises(EffectFailed, match="the dead-letter queue 'deadx'"):
        missing.dead_letter(MESSAGE, reason="why")
