"""Coverage traces what can reach a branch of ours, and all else runs as without it."""

import sys
from types import SimpleNamespace

import boto3
import pytest
from botocore.exceptions import ParamValidationError

from tests.tracing import TRACED_EXAMPLES, first_traced, traced_call, untraced


@pytest.fixture
def traced():
    """The names of the functions whose calls are traced: of `called` and `fails`."""
    names = []

    def trace(frame, event, _argument):
        if event == "call" and frame.f_code in (called.__code__, fails.__code__):
            names.append(frame.f_code.co_name)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    yield names
    sys.settrace(before)


def called() -> None: ...


def fails() -> None:
    raise ValueError("an error")


def test_a_function_runs_untraced_and_its_caller_is_traced_again(traced):
    untraced(called)()
    with pytest.raises(ValueError, match="an error"):
        untraced(fails)()
    called()

    assert traced == ["called"]


def test_the_calls_of_clients_run_untraced(traced):
    names = []
    client = boto3.client("sqs", region_name="us-east-1")
    client.meta.events.register("before-parameter-build.*", lambda **_: names.append(sys.gettrace()))

    with pytest.raises(ParamValidationError):
        client.send_message()
    assert names == [None]


def test_the_first_examples_of_a_property_are_traced():
    def trace(frame, event, argument): ...

    seen = []
    example = first_traced(lambda: seen.append(sys.gettrace()), trace)
    before = sys.gettrace()
    sys.settrace(None)
    for _ in range(TRACED_EXAMPLES + 5):
        example()
    sys.settrace(before)

    assert seen == [trace] * TRACED_EXAMPLES + [None] * 5


@pytest.mark.parametrize("is_property", [True, False])
def test_a_test_that_is_no_property_is_traced_as_a_whole(traced, is_property):
    handle = SimpleNamespace(inner_test=called)
    item = SimpleNamespace(obj=SimpleNamespace(is_hypothesis_test=is_property, hypothesis=handle))
    calling = traced_call(item)

    next(calling)
    is_traced, is_counted = sys.gettrace() is not None, handle.inner_test is not called
    calling.close()

    assert (is_traced, is_counted) == (not is_property, is_property)
    assert handle.inner_test is called
    assert sys.gettrace() is not None
