"""The proof of a command's sender, and the limit of its receives."""

import pytest

from signalbox.control.delivery import MAXIMUM_RECEIVES, UnprovenSender, WornOut, proven_sender, refuse_worn_out


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


def test_a_command_is_received_a_limited_number_of_times():
    refuse_worn_out({})
    refuse_worn_out({"ApproximateReceiveCount": str(MAXIMUM_RECEIVES)})

    with pytest.raises(WornOut, match="received 6 times without a result"):
        refuse_worn_out({"ApproximateReceiveCount": str(MAXIMUM_RECEIVES + 1)})
