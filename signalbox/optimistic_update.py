"""The optimistic update of a record: read, change, write if unchanged, else start again."""

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def optimistic_update(attempt: Callable[[], Result | None], *, tries: int) -> Result | None:
    """Return the result of the first successful attempt, or None after `tries` attempts.

    An attempt reads the record, changes it and writes it on the condition that it is unchanged; it returns None when a
    concurrent write came first.
    """
    return next((result for _ in range(tries) if (result := attempt()) is not None), None)
