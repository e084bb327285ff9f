"""The dead-letter source: each message is taken once, sent ones are deleted, unselected ones stay."""

from datetime import UTC, datetime

import pytest

from signalbox.aws.history.dead_letter_source import DeadLetterSource
from signalbox.errors import EffectFailed
from signalbox.exchange.messages.replayed_messages import original_of_dead_letter
from signalbox.history.replay_state import ReplayId, ReplayProgress, SendResult
from signalbox.sarracenia.rights.names import ExchangeName

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLANNED = ReplayProgress(ReplayId("again"), {}, "", messages=0, size_bytes=0, planned_at=NOON)


@pytest.fixture
def url(sqs) -> str:
    return sqs.create_queue(QueueName="xs-dlq")["QueueUrl"]


@pytest.fixture
def quick(monkeypatch):
    """Poll without waiting: moto would wait in real time."""
    monkeypatch.setattr("signalbox.aws.history.dead_letter_source.WAIT_SECONDS", 0)


def put(sqs, url: str, key: str | None) -> str:
    attributes = {} if key is None else {"topic": {"DataType": "String", "StringValue": key}}
    return sqs.send_message(QueueUrl=url, MessageBody="body", MessageAttributes=attributes)["MessageId"]


def letters(sqs, url: str) -> DeadLetterSource:
    return DeadLetterSource(
        sqs,
        url,
        read=lambda letter: original_of_dead_letter(letter, exchange=ExchangeName("xs")),
        is_selected=lambda original: original.properties.key.startswith("a"),
    )


def left(sqs, url: str) -> int:
    return int(
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])["Attributes"][
            "ApproximateNumberOfMessages"
        ]
    )


@pytest.mark.usefixtures("quick")
def test_selected_dead_letters_are_taken_and_the_others_become_visible_again(sqs, url):
    wanted = [put(sqs, url, f"a.{number}") for number in range(12)]
    put(sqs, url, "b")
    put(sqs, url, None)
    source = letters(sqs, url)

    found = [*source.take(11, PLANNED), *source.take(100, PLANNED)]

    assert sorted(one.origin for one in found) == sorted(wanted)
    assert (source.not_selected, source.unreadable, source.in_flight()) == (1, 1, 14)
    source.discard(wanted)
    source.release()
    assert (left(sqs, url), source.in_flight()) == (2, 0)
    assert not source.is_repeatable


@pytest.mark.usefixtures("quick")
def test_dead_letters_sent_by_a_killed_run_are_deleted_and_doubtful_ones_stay(sqs, url):
    sent, doubtful, fresh = (put(sqs, url, "a") for _ in range(3))
    killed = PLANNED.claimed([sent], at=NOON).settled(SendResult(taken={sent: "new"})).claimed([doubtful], at=NOON)
    source = letters(sqs, url)

    found = source.take(10, killed.resumed(now=NOON, is_fifo=False))
    source.release()

    assert [one.origin for one in found] == [fresh]
    assert left(sqs, url) == 2


class Repeating:
    """A fake SQS client that redelivers a received or deleted message."""

    def __init__(self, *pages: list[str]) -> None:
        self.pages, self.deleted = list(pages), []

    def receive_message(self, **_):
        ids = self.pages.pop(0) if self.pages else []
        attributes = {"topic": {"DataType": "String", "StringValue": "a"}}
        return {
            "Messages": [
                {
                    "MessageId": one,
                    "ReceiptHandle": f"{one}/{len(self.pages)}",
                    "Body": "b",
                    "MessageAttributes": attributes,
                    "Attributes": {"SentTimestamp": "1000"},
                }
                for one in ids
            ]
        }

    def delete_message_batch(self, *, QueueUrl, Entries):  # noqa: N803 - boto3's names
        self.deleted += [entry["ReceiptHandle"] for entry in Entries]


def test_a_redelivered_dead_letter_is_not_taken_again_and_is_deleted_with_its_newest_receipt():
    sqs = Repeating(["1"], ["1", "2"], [])
    source = letters(sqs, "https://sqs/1/xs-dlq")

    found = source.take(10, PLANNED)
    source.discard(["1"])

    assert ([one.origin for one in found], sqs.deleted) == (["1", "2"], ["1/1"])


def test_a_dead_letter_redelivered_after_its_deletion_is_deleted_again():
    sqs = Repeating(["1"], ["1"], [])
    source = letters(sqs, "https://sqs/1/xs-dlq")
    source.take(1, PLANNED)
    source.discard(["1"])

    assert source.take(1, PLANNED) == []
    assert sqs.deleted == ["1/2", "1/1"]


def test_a_missing_queue_raises(sqs):
    source = letters(sqs, "https://sqs.us-east-1.amazonaws.com/123456789012/nobody-dlq")

    with pytest.raises(EffectFailed, match="'nobody-dlq'"):
        source.take(1, PLANNED)
