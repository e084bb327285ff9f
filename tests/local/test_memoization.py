"""What the tests replace in botocore does the same as botocore's own."""

import inspect
from copy import copy
from functools import partial

import boto3
import pytest
from botocore.hooks import HierarchicalEmitter

from tests.memoization import accepts_any_names


class Handler:
    def of_any_names(self, **named: object) -> None: ...

    def of_one_name(self, name: str) -> None: ...

    def __call__(self, event: str, **named: object) -> None: ...


@pytest.mark.parametrize(
    "handler",
    [
        Handler().of_any_names,
        Handler().of_one_name,
        Handler.of_any_names,
        Handler(),
        partial(Handler().of_one_name, "a"),
        lambda name, *, other=1: None,
        lambda **named: None,
        boto3.client,
    ],
)
def test_a_handler_takes_any_names_if_its_signature_has_them(handler):
    assert accepts_any_names(handler) == (inspect.getfullargspec(handler)[2] is not None)


def test_a_copied_emitter_has_the_same_handlers_and_its_own_lists():
    emitter = HierarchicalEmitter()
    emitter.register("before-call.sqs", lambda **_: "first")
    emitter.register_last("before-call.sqs.SendMessage", lambda **_: "last")

    other = copy(emitter)
    other.register("before-call.sqs", lambda **_: "more")

    assert [answer for _, answer in emitter.emit("before-call.sqs.SendMessage")] == ["last", "first"]
    assert [answer for _, answer in other.emit("before-call.sqs.SendMessage")] == ["last", "first", "more"]
