"""Calls that remove messages of a queue exclude one another, so that no message is restored or lost."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from signalbox.local.emulator.patches.queue_locks import exclusive

WAIT_SECONDS = 10.0


def test_a_message_that_is_sent_while_two_calls_remove_others_is_kept():
    """The first call builds its new list; the second one removes a message and another is sent before it ends."""
    queue: dict[str, list[str]] = {"messages": ["first", "second"]}
    lock, is_building, may_end = threading.RLock(), threading.Event(), threading.Event()

    def remove(name: str, *waits: threading.Event) -> None:
        kept = [message for message in queue["messages"] if message != name]
        is_building.set()
        for event in waits:
            event.wait(WAIT_SECONDS)
        queue["messages"] = kept

    def remove_and_send(_: Any) -> None:
        remove("second")
        queue["messages"].append("sent")

    with ThreadPoolExecutor() as threads:
        first = threads.submit(exclusive(remove, lock), "first", may_end)
        is_building.wait(WAIT_SECONDS)
        second = threads.submit(exclusive(remove_and_send, lock), None)
        threading.Timer(0.1, may_end.set).start()
        first.result(WAIT_SECONDS)
        second.result(WAIT_SECONDS)

    assert queue["messages"] == ["sent"]


def test_a_call_returns_its_result_and_releases_the_lock():
    lock = threading.Lock()

    assert exclusive(lambda data, url: (data, url), lock)("data", "url") == ("data", "url")
    with pytest.raises(KeyError):
        exclusive(lambda: {}["absent"], lock)()
    assert not lock.locked()


@pytest.mark.emulator
@pytest.mark.release
def test_messages_are_removed_one_by_one_and_in_batches(running):
    sqs = running.session().client("sqs")
    url = sqs.create_queue(QueueName="locked")["QueueUrl"]
    for number in range(3):
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
    handles = [one["ReceiptHandle"] for one in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]]

    sqs.delete_message(QueueUrl=url, ReceiptHandle=handles[0])
    entries = [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(handles[1:])]
    sqs.delete_message_batch(QueueUrl=url, Entries=entries)

    names = ["ApproximateNumberOfMessagesNotVisible"]
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"] == {names[0]: "0"}
