"""Dead-letter queues, as whoever puts messages aside has them."""

import pytest

from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.errors import EffectFailed
from signalbox.messages import Message, MessageId


@pytest.fixture
def letters(sqs) -> SqsDeadLetters:
    return SqsDeadLetters(sqs, sqs.create_queue(QueueName="dead")["QueueUrl"])


@pytest.fixture
def ordered_letters(sqs) -> SqsDeadLetters:
    return SqsDeadLetters(sqs, sqs.create_queue(QueueName="dead.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"])


def read(letters: SqsDeadLetters) -> list[tuple[str, str | None, dict[str, str]]]:
    page = letters.sqs.receive_message(
        QueueUrl=letters.queue_url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
    )
    return [
        (
            letter["Body"],
            letter["Attributes"].get("MessageGroupId"),
            {name: one["StringValue"] for name, one in letter["MessageAttributes"].items()},
        )
        for letter in page["Messages"]
    ]


def test_a_message_of_a_fifo_queue_is_put_aside_once_in_its_groups_order(ordered_letters) -> None:
    message = Message(MessageId("m"), "{}", {}, {"MessageGroupId": "c1="}, {})

    for _ in range(2):
        ordered_letters.bury(message, reason="because" * 1_000)

    told = {"Reason": ("because" * 1_000)[:1_000], "OriginalMessageId": "m"}
    assert read(ordered_letters) == [("{}", "c1=", told)]


def test_a_message_of_another_queue_has_no_order(letters) -> None:
    letters.bury(Message(MessageId("m"), "{}", {}, {}, {}), reason="why")

    assert read(letters) == [("{}", None, {"Reason": "why", "OriginalMessageId": "m"})]


def test_what_cannot_be_put_aside_now_may_be_later(letters) -> None:
    message = Message(MessageId("m"), "{}", {}, {}, {})

    with pytest.raises(EffectFailed, match="the dead-letter queue 'deadx'"):
        SqsDeadLetters(letters.sqs, letters.queue_url + "x").bury(message, reason="why")
