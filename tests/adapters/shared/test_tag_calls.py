"""Calls for tags are paced, and repeated while others of the account call."""

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.shared.tag_calls import TRIES, TagCalls


class QueueGone(Exception):
    """The error of SQS for a queue that does not exist."""


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "ListQueueTags")


class Time:
    """A clock, and an SQS that raises the given errors one after the other."""

    exceptions = SimpleNamespace(QueueDoesNotExist=QueueGone)

    def __init__(self, *errors: Exception) -> None:
        self.now, self.called_at, self.errors = 100.0, [], list(errors)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def list_queue_tags(self, **_: str) -> dict:
        self.called_at.append(self.now)
        if self.errors:
            raise self.errors.pop(0)
        return {"Tags": {"a": "b"}}

    def tags(self) -> object:
        return TagCalls(clock=lambda: self.now, sleep=self.sleep).tags(self, "https://queues.example/a")


def test_there_are_at_most_four_calls_a_second():
    time = Time()
    calls = TagCalls(clock=lambda: time.now, sleep=time.sleep)

    for _ in range(4):
        calls.tags(time, "https://queues.example/a")
    time.now += 60
    calls.tags(time, "https://queues.example/a")

    assert time.called_at == [100, 100.25, 100.5, 100.75, 160.75]


def test_a_call_is_repeated_at_the_same_pace_while_the_account_makes_too_many():
    time = Time(refusal("RequestThrottled"), refusal("RequestThrottled"))

    assert time.tags() == {"a": "b"}

    assert time.called_at == [100, 100.25, 100.5]


@pytest.mark.parametrize(("code", "tries"), [("RequestThrottled", TRIES), ("AccessDenied", 1)])
def test_another_error_and_one_that_stays_are_raised(code, tries):
    time = Time(*[refusal(code)] * TRIES)

    with pytest.raises(ClientError, match=code):
        time.tags()

    assert len(time.called_at) == tries


def test_a_queue_that_is_gone_has_no_tags():
    assert Time(QueueGone()).tags() == {}
