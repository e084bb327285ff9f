"""The thread pool of a function instance, for concurrent calls to AWS."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

THREADS = 10  # the size of botocore's connection pool
Value = TypeVar("Value")
Answer = TypeVar("Answer")


@cache
def pool() -> ThreadPoolExecutor:
    """Return the thread pool."""
    return ThreadPoolExecutor(THREADS)


def parallel_map(function: Callable[[Value], Answer], values: Iterable[Value], /) -> list[Answer]:
    """Return the results of concurrent calls, in the order of `values`.

    All have ended when this ends, however it does: a copy that is sent later could overtake another.
    """
    found = list(values)
    if len(found) == 1:
        return [function(found[0])]  # another thread would only cost time
    futures = [pool().submit(function, value) for value in found]
    wait(futures)
    return [future.result() for future in futures]
