"""The delivery of a command: the proof of its sender, and whether a later command has overtaken it."""

from datetime import UTC, datetime

import pytest

from signalbox.control.delivery import ONCE, CommandDelivery, Overtaken, UnprovenSender, proven_sender


def test_a_sender_is_proven_by_sqs():
    assert proven_sender({"SenderId": "AROA1:session"}) == "AROA1:session"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"SenderId": "AIDA1", "DeadLetterQueueSourceArn": "arn:eve"}, "SQS moved the command here from arn:eve"),
        ({"SenderId": ""}, "has no SenderId"),
        ({}, "has no SenderId"),
    ],
)
def test_a_moved_command_and_one_without_a_sender_are_refused(attributes, reason):
    with pytest.raises(UnprovenSender, match=reason):
        proven_sender(attributes)


def test_only_a_repeated_command_is_overtaken_by_one_that_was_sent_later():
    sent, later = (datetime(2026, 3, 1, 12, 0, second, tzinfo=UTC) for second in (0, 1))
    attributes = {"SentTimestamp": "1772366400000", "ApproximateReceiveCount": "2"}

    repeated, first = CommandDelivery.of(attributes), CommandDelivery.of(attributes | {"ApproximateReceiveCount": "1"})

    assert (repeated, first) == (CommandDelivery(sent, is_repeated=True), CommandDelivery(sent))
    assert CommandDelivery.of({}) == ONCE
    for delivery, changed_at in ((repeated, sent), (repeated, None), (first, later), (ONCE, later)):
        delivery.refuse_overtaken(changed_at, "a queue")
    with pytest.raises(Overtaken, match="a command that was sent after this one changed a queue"):
        repeated.refuse_overtaken(later, "a queue")
