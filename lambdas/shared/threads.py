"""The thread pool of a function instance, for concurrent calls to AWS."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

THREADS = 10  # the size of botocore's connection pool
INNER_THREADS = 8  # which use it while those wait for them
Value = TypeVar("Value")
Answer = TypeVar("Answer")


@cache
def pool(size: int = THREADS) -> ThreadPoolExecutor:
    """Return the thread pool of a size."""
    return ThreadPoolExecutor(size)


def inner_map(function: Callable[[Value], Answer], values: Iterable[Value], /) -> list[Answer]:
    """Do as `parallel_map` for a call within one of its threads: such a thread must not wait for its own pool."""
    return parallel_map(function, values, threads=INNER_THREADS)


def parallel_map(
    function: Callable[[Value], Answer], values: Iterable[Value], /, *, threads: int = THREADS
) -> list[Answer]:
    """Return the results of concurrent calls, in the order of `values`.

    All calls have ended when it returns or raises, since a copy that is sent later could overtake another.
    """
    found = list(values)
    if len(found) == 1:
        return [function(found[0])]  # another thread would only cost time
    futures = [pool(threads).submit(function, value) for value in found]
    wait(futures)
    return [future.result() for future in futures]
