"""A message of a standard queue can be deleted again, and with the handle of an earlier receive."""

import pytest

from signalbox.local.emulator.patches.repeated_deletions import repeatable

HANDLE = "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"


class RefusedError(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def refusing(code):
    def delete(_data, _url):
        raise RefusedError(code)

    return repeatable(delete, RefusedError)


def test_a_handle_that_is_no_longer_valid_is_accepted():
    assert refusing("ReceiptHandleIsInvalid")({"QueueUrl": "x/q", "ReceiptHandle": HANDLE}, "") == {}


@pytest.mark.parametrize(
    ("code", "url", "handle"),
    [
        ("ReceiptHandleIsInvalid", "x/q.fifo", HANDLE),
        ("ReceiptHandleIsInvalid", "x/q", "nonsense"),
        ("QueueDoesNotExist", "x/q", HANDLE),
    ],
    ids=["FIFO", "no handle", "another error"],
)
def test_other_refusals_stay(code, url, handle):
    with pytest.raises(RefusedError, match=code):
        refusing(code)({"ReceiptHandle": handle}, url)


@pytest.mark.emulator
@pytest.mark.release
def test_a_message_is_deleted_twice(running):
    sqs = running.session().client("sqs")
    url = sqs.create_queue(QueueName="repeated")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    handle = sqs.receive_message(QueueUrl=url)["Messages"][0]["ReceiptHandle"]

    for _ in range(2):
        sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)

    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
        sqs.delete_message(QueueUrl=url, ReceiptHandle="nonsense")
