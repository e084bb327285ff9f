"""Outboxes in SQS."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.errors import EffectFailed
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.items import ItemId, Reply, parse_item
from signalbox.live.router.distributor import OutboxMessage
from tests.fakes.backoff import AT_ONCE

CONNECTION = ConnectionId("L0SM9cOFvHcCIhw=")


@pytest.fixture
def outboxes(sqs) -> SqsOutboxes:
    url = sqs.create_queue(QueueName="outbox.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    return SqsOutboxes(sqs, url, backoff=AT_ONCE)


def taken(outboxes: SqsOutboxes) -> list[tuple[str, str]]:
    found = []
    while page := outboxes.sqs.receive_message(
        QueueUrl=outboxes.queue_url, MaxNumberOfMessages=10, AttributeNames=["All"]
    ).get("Messages"):
        for one in page:
            found.append((one["Attributes"]["MessageGroupId"], one["Body"]))
            outboxes.sqs.delete_message(QueueUrl=outboxes.queue_url, ReceiptHandle=one["ReceiptHandle"])
    return found


def posting(number: int, connection: str = CONNECTION, text: str = "text") -> OutboxMessage:
    return OutboxMessage(ConnectionId(connection), ItemId(str(number)), text)


def test_items_are_enqueued_in_order_and_once(outboxes) -> None:
    items = [Reply(ItemId(str(number)), "[]") for number in range(3)]

    for _ in range(2):
        outboxes.put(CONNECTION, items)

    found = taken(outboxes)
    assert [parse_item(text) for _, text in found] == items
    assert {group for group, _ in found} == {CONNECTION}


def test_equal_items_of_two_connections_are_distinct(outboxes) -> None:
    assert outboxes.send([posting(1), posting(1, "d")]) == []

    assert sorted(group for group, _ in taken(outboxes)) == sorted([CONNECTION, "d"])


def test_a_call_has_ten_messages_unless_they_are_large(outboxes, monkeypatch) -> None:
    send, calls = outboxes.sqs.send_message_batch, []

    def counted(**parameters: Any) -> Any:
        calls.append(len(parameters["Entries"]))
        return send(**parameters)

    monkeypatch.setattr(outboxes.sqs, "send_message_batch", counted)
    outboxes.send([posting(number, f"c{number}") for number in range(23)])
    outboxes.send([posting(number, f"d{number}", "x" * 200_000) for number in range(7)])
    outboxes.send([])

    assert calls == [10, 10, 3, 5, 2]


def test_failed_messages_are_reported(outboxes, monkeypatch) -> None:
    answers = [
        {"Failed": [{"Id": "1", "Code": "KmsAccessDenied", "SenderFault": True}]},
        ClientError({"Error": {"Code": "ServiceUnavailable"}}, "SendMessageBatch"),
        EndpointConnectionError(endpoint_url="https://sqs"),
    ]

    def answered(**_parameters: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(outboxes.sqs, "send_message_batch", answered)

    assert outboxes.send([posting(number, f"c{number}") for number in range(30)]) == [1, *range(10, 30)]


def test_a_failed_put_raises(outboxes) -> None:
    with pytest.raises(EffectFailed, match="the queue of outboxes"):
        SqsOutboxes(outboxes.sqs, outboxes.queue_url + "x").put(CONNECTION, [Reply(ItemId("1"), "[]")])
