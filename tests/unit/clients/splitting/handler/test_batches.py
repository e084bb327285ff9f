"""Batches of a session's queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from signalbox.clients.splitting.handler.batches import LARGEST_PAYLOAD_BYTES, BatchQueue, chosen
from signalbox.clients.splitting.handler.settings import MappingSettings
from tests.patience import wait_for

DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ChangeMessageVisibilityBatch")


@dataclass
class Queue:
    """Returns the replies of a script to calls that receive; each takes the time that it waits."""

    replies: list[Sequence[str]]
    now: float = 0.0
    received: list[Mapping[str, Any]] = field(default_factory=list)
    deleted: list[Sequence[str]] = field(default_factory=list)
    hidden: list[tuple[str, int]] = field(default_factory=list)
    undeletable: str = ""
    denies: bool = False

    def receive_message(self, **call: Any) -> dict[str, Any]:
        self.received.append(call)
        bodies = self.replies.pop(0) if self.replies else ()
        if not bodies:
            self.now += call["WaitTimeSeconds"]
        return {"Messages": [message(one) for one in bodies]} if bodies else {}

    def delete_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        self.deleted.append([one["ReceiptHandle"] for one in Entries])
        failed = [one["Id"] for one in Entries if one["ReceiptHandle"] == self.undeletable]
        return {"Failed": [{"Id": one, "Code": "ReceiptHandleIsInvalid"} for one in failed]}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> None:  # noqa: N803
        if self.denies:
            raise DENIED
        self.hidden += [(one["ReceiptHandle"], one["VisibilityTimeout"]) for one in Entries]


def message(body: str) -> dict[str, str]:
    return {"MessageId": body[:9], "ReceiptHandle": body[:9], "Body": body}


def batches(queue: Queue, *, size: int, window: int = 0, visibility: int = 30) -> tuple[BatchQueue, list[str]]:
    problems: list[str] = []
    settings = MappingSettings(size, timedelta(seconds=window))
    return BatchQueue(queue, "url", settings, visibility, problems.append, clock=lambda: queue.now), problems


def ids(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    return [one["MessageId"] for one in messages]


def test_without_a_window_a_batch_is_what_one_call_receives():
    queue = Queue([["a", "b"], ["c"]])
    taken, _ = batches(queue, size=10)

    assert ids(taken.gather(poll_seconds=2)) == ["a", "b"]
    assert queue.received[0]["WaitTimeSeconds"] == 2
    assert queue.received[0]["MaxNumberOfMessages"] == 10


def test_an_empty_queue_has_no_batch():
    queue = Queue([])

    assert batches(queue, size=100, window=300)[0].gather(poll_seconds=2) == []
    assert len(queue.received) == 1


def test_a_batch_is_gathered_until_it_is_full():
    queue = Queue([[f"{n}" for n in range(10)], [], ["x", "y"], ["z"]])

    batch = batches(queue, size=12, window=60)[0].gather(poll_seconds=2)

    assert ids(batch) == [*map(str, range(10)), "x", "y"]
    assert [call["MaxNumberOfMessages"] for call in queue.received] == [10, 2, 2]


def test_a_batch_ends_with_its_window():
    queue = Queue([["a"]])

    batch = batches(queue, size=100, window=25)[0].gather(poll_seconds=2)

    assert ids(batch) == ["a"]
    assert [call["WaitTimeSeconds"] for call in queue.received] == [2, 20, 5]


def test_a_batch_that_an_invocation_cannot_take_is_parted():
    large = LARGEST_PAYLOAD_BYTES // 2
    queue = Queue([["a" * large, "b" * large, "c"]])
    taken, _ = batches(queue, size=10)

    assert [ids(taken.gather(poll_seconds=2)) for _ in range(2)] == [["aaaaaaaaa"], ["bbbbbbbbb", "c"]]
    assert len(queue.received) == 1


def test_messages_are_deleted_by_tens_and_failures_are_reported():
    queue = Queue([], undeletable="3")
    taken, problems = batches(queue, size=100)

    taken.delete([message(str(number)) for number in range(12)])

    assert [len(call) for call in queue.deleted] == [10, 2]
    assert problems == ["3 is not deleted and comes again: ReceiptHandleIsInvalid"]


def test_released_messages_are_visible_at_once_with_those_that_wait():
    large = "b" * LARGEST_PAYLOAD_BYTES
    queue = Queue([["a", large]])
    taken, _ = batches(queue, size=10)
    batch = taken.gather(poll_seconds=2)

    taken.release(batch)

    assert queue.hidden == [("a", 0), ("bbbbbbbbb", 0)]
    assert taken.gather(poll_seconds=2) == []


def test_a_refused_release_is_reported():
    queue = Queue([], denies=True)
    taken, problems = batches(queue, size=10)

    taken.release([message("a")])

    (problem,) = problems
    assert "the visibility of 1 messages is not changed" in problem


def test_messages_stay_invisible_while_they_are_held():
    queue = Queue([])
    taken, _ = batches(queue, size=10, visibility=1)

    with taken.held([message("a")]):
        wait_for(lambda: len(queue.hidden) > 1, "the visibility is prolonged twice")

    assert set(queue.hidden) == {("a", 1)}


@pytest.mark.parametrize(("wanted", "found"), [((), []), (("b", "x"), ["b"])])
def test_messages_are_chosen_by_id(wanted, found):
    assert ids(chosen([message("a"), message("b")], wanted)) == found
