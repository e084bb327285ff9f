"""Acknowledgements, releases and prolonged invisibility of a connection's messages."""

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from signalbox.kombu.names import Namespace
from signalbox.kombu.receipts import ChannelReceipt, Receipts


class Sqs:
    """A fake of SQS that records its calls; it refuses some receipts for good, and fails once for others."""

    def __init__(self) -> None:
        self.deleted: list[list[str]] = []
        self.changed: list[tuple[int, list[str]]] = []
        self.refused: set[str] = set()
        self.failing: set[str] = set()
        self.is_down = False

    def delete_message_batch(self, *, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803 - boto3's
        if self.is_down:
            raise EndpointConnectionError(endpoint_url=QueueUrl)
        self.deleted.append([one["ReceiptHandle"] for one in Entries])
        return {"Failed": self._failed(Entries)}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803
        self.changed.append((Entries[0]["VisibilityTimeout"], [one["ReceiptHandle"] for one in Entries]))
        return {"Failed": self._failed(Entries)}

    def _failed(self, entries: list[Any]) -> list[dict[str, Any]]:
        failed = [one for one in entries if one["ReceiptHandle"] in self.refused | self.failing]
        faults = {one["Id"]: one["ReceiptHandle"] in self.refused for one in failed}
        self.failing = set()
        return [{"Id": number, "SenderFault": fault, "Code": "code"} for number, fault in faults.items()]


@pytest.fixture
def sqs() -> Sqs:
    return Sqs()


@pytest.fixture
def receipts(sqs: Sqs) -> Receipts:
    return Receipts(sqs, Namespace(None, ""), 30, threading.Condition(threading.RLock()))


def held(receipts: Receipts, count: int, channel: object = "channel") -> list[int]:
    return [receipts.add(ChannelReceipt("url", f"r{number}", channel)) for number in range(count)]


def test_acknowledged_messages_are_deleted_by_tens_and_once(sqs, receipts):
    tags = held(receipts, 23)

    receipts.ack(tags)
    receipts.ack(tags[:5])
    receipts.flush()
    receipts.flush()

    assert [len(part) for part in sqs.deleted] == [10, 10, 3]


def test_an_acknowledgement_that_fails_is_repeated(sqs, receipts):
    sqs.is_down = True
    receipts.ack(held(receipts, 2))
    with pytest.raises(EndpointConnectionError):
        receipts.flush()

    sqs.is_down = False
    receipts.flush()

    assert sqs.deleted == [["r0", "r1"]]


def test_what_sqs_fails_to_delete_is_deleted_after_the_others_and_what_it_refuses_is_not(sqs, receipts, caplog):
    sqs.refused, sqs.failing = {"r0"}, {"r1"}
    receipts.ack(held(receipts, 12))
    with pytest.raises(ClientError, match="SQS failed for 1 messages"):
        receipts.flush()

    receipts.flush()

    assert sqs.deleted == [[f"r{number}" for number in range(10)], ["r10", "r11", "r1"]]
    assert caplog.messages == ["an acknowledged message of url comes again: code"]


def test_a_closed_channel_releases_its_own_messages_and_no_acknowledged_one(sqs, receipts):
    tags = held(receipts, 3)
    held(receipts, 1, channel="other")
    receipts.ack(tags[:1])

    receipts.settle("channel")

    assert (sqs.deleted, sqs.changed) == ([["r0"]], [(0, ["r1", "r2"])])
    assert receipts.of_channel("channel") == []
    assert len(receipts.of_channel("other")) == 1


def test_all_messages_are_prolonged_until_they_are_acknowledged(sqs, receipts):
    """SQS refuses that 12 hours after a receive, while a message can still be acknowledged."""
    sqs.refused = {"r0"}
    tags = held(receipts, 2)

    receipts.extend()
    receipts.ack(tags[1:])
    receipts.extend()

    assert sqs.changed == [(30, ["r0", "r1"]), (30, ["r0"])]


def test_all_messages_up_to_a_tag_are_those_of_the_channel(receipts):
    first, second, third = held(receipts, 3)
    held(receipts, 1, channel="other")

    assert receipts.of_channel("channel", up_to=second) == [first, second]
    assert third in receipts.of_channel("channel")
