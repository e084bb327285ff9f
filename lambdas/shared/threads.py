"""Threads that wait for AWS, a few for each function instance."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

THREADS = 10  # as many connections as botocore keeps for a client
Value = TypeVar("Value")
Answer = TypeVar("Answer")


@cache
def pool() -> ThreadPoolExecutor:
    """Return the threads that wait for SQS and DynamoDB."""
    return ThreadPoolExecutor(THREADS)


def parallel_map(function: Callable[[Value], Answer], values: Iterable[Value], /) -> list[Answer]:
    """Return the answers of calls of which several are made at a time.

    All have ended when this ends, however it does: a copy that is sent later could overtake another.
    """
    futures = [pool().submit(function, value) for value in values]
    wait(futures)
    return [future.result() for future in futures]
