"""The notification of many sessions: each connection gets the signal once, and failures are raised."""

import boto3
import pytest

from signalbox.aws.live.session_notifier import SqsSessionNotifier
from signalbox.errors import EffectFailed
from signalbox.live.model.state import RightsChanged
from tests.fakes.aws import aws  # noqa: F401 - a fixture
from tests.fakes.backoff import AT_ONCE


@pytest.fixture
def queue(aws) -> str:  # noqa: F811
    return boto3.client("sqs").create_queue(QueueName="inbox.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]


def groups(queue):
    """Return the message groups of the queue."""
    found = []
    sqs = boto3.client("sqs")
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, AttributeNames=["All"]).get(
        "Messages"
    ):
        assert {message["Body"] for message in messages} == {'{"heard": "rights"}'}
        found += [message["Attributes"]["MessageGroupId"] for message in messages]
    return sorted(found)


def test_each_of_many_connections_is_notified_once(queue):
    connections = [f"c{number}=" for number in range(25)]
    notifier = SqsSessionNotifier(boto3.client("sqs"), queue)

    notifier.notify_all([*connections, "c0="], RightsChanged(), request="r-1")
    notifier.notify_all(connections, RightsChanged(), request="r-1")
    notifier.notify_all([], RightsChanged(), request="r-2")

    assert groups(queue) == sorted(connections)


class Refusing:
    """A queue that takes the first message of each call."""

    def send_message_batch(self, QueueUrl, Entries):  # noqa: N803 - boto3's
        failed = [{"Id": one["Id"], "Code": "Invalid", "SenderFault": True} for one in Entries[1:]]
        return {"Successful": [{"Id": Entries[0]["Id"], "MessageId": "m"}], "Failed": failed}


def test_connections_that_were_not_notified_are_counted():
    with pytest.raises(EffectFailed, match="9 of 10 connections were not notified"):
        SqsSessionNotifier(Refusing(), "queue", backoff=AT_ONCE).notify_all(
            [*(f"c{number}" for number in range(9)), *(["d"] * 2)], RightsChanged(), request="r"
        )
