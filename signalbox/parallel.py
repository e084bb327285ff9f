"""The port for calling a function with many values, serially or in parallel."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

Value = TypeVar("Value")
Answer = TypeVar("Answer")


class ParallelMap(Protocol):
    """Calls a function for each value, perhaps several at a time, and returns the results in order, as `map` does."""

    def __call__(self, function: Callable[[Value], Answer], values: Iterable[Value], /) -> Iterable[Answer]:
        """Return the results. The exception of a call is raised at the position of its result."""


def serial_map(function: Callable[[Value], Answer], values: Iterable[Value], /) -> Iterable[Answer]:
    """Return the results of one call after the other: the `ParallelMap` without threads."""
    return map(function, values)
