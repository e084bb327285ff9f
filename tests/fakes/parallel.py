"""A `ParallelMap` for tests of calls whose order does not matter."""

from collections.abc import Callable, Iterable

from signalbox.parallel import Answer, Value


def last_first(function: Callable[[Value], Answer], values: Iterable[Value], /) -> list[Answer]:
    """Return the results of calls in order, of which the last one was made first."""
    return [function(one) for one in list(values)[::-1]][::-1]
