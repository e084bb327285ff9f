"""The proof of a command's sender."""

import pytest

from signalbox.control.delivery import UnprovenSender, proven_sender


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
