"""Coverage's tracing where it can find something: not inside boto3's calls, and in the first examples of a property.

On Python 3.11 a trace function makes all code run at half speed, that of other packages too. Between a call of a boto3
client and its response runs none of our code, but moto's whole service; and a property that has passed its first
examples rarely reaches another branch. All examples run, traced or not.

A tracer counts the frames that it enters and leaves: each function switches it off and on in one and the same frame.
"""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeVar

import pytest
from botocore.client import BaseClient, ClientCreator

P, T = ParamSpec("P"), TypeVar("T")
Tracer = Callable[[FrameType, str, Any], Any]
TRACED_EXAMPLES = 50  # of 100; twenty cover the core too, so that no branch depends on luck


def trace_no_calls() -> None:
    """Let boto3's clients be created and called without tracing."""
    BaseClient._make_api_call = untraced(BaseClient._make_api_call)
    ClientCreator.create_client = untraced(ClientCreator.create_client)


def untraced(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that does the same without tracing."""

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return function(*arguments, **named)
        finally:
            sys.settrace(tracer)

    return call


def traced_call(item: pytest.Item) -> Generator[None]:
    """Call a test; of a property, trace only the first examples."""
    tracer, test = sys.gettrace(), getattr(item, "obj", None)
    if tracer is None or not getattr(test, "is_hypothesis_test", False):
        return (yield)
    with first_examples_traced(test.hypothesis, tracer):
        sys.settrace(None)
        try:
            return (yield)
        finally:
            sys.settrace(tracer)


@contextmanager
def first_examples_traced(handle: Any, tracer: Tracer) -> Iterator[None]:
    """Trace the first examples of the property of a Hypothesis handle."""
    test = handle.inner_test
    handle.inner_test = first_traced(test, tracer)
    try:
        yield
    finally:
        handle.inner_test = test


def first_traced(test: Callable[P, None], tracer: Tracer) -> Callable[P, None]:
    """Return the same test, whose first examples are traced."""
    begun = 0

    @wraps(test)
    def example(*arguments: P.args, **named: P.kwargs) -> None:
        nonlocal begun
        begun += 1
        if begun > TRACED_EXAMPLES:
            return test(*arguments, **named)
        sys.settrace(tracer)
        try:
            return test(*arguments, **named)
        finally:
            sys.settrace(None)

    return example
