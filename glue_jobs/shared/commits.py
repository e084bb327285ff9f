"""Commits of Iceberg tables while other runs commit: a rejected write is repeated on the tables as they are then."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from py4j.protocol import Py4JJavaError

Result = TypeVar("Result")

MAX_ATTEMPTS = 5
# Iceberg's errors of rejected commits, and of those whose result is unknown, whose rows a repeated write finds.
CONFLICTS = frozenset(
    {"AlreadyExistsException", "CommitFailedException", "CommitStateUnknownException", "ValidationException"}
)


class ConflictingRunsError(Exception):
    """Raised when other runs changed the same rows during each attempt to write them."""


def repeat_on_conflict(write: Callable[[], Result]) -> Result:
    """Run an idempotent write, and repeat it from its first read while commits of other runs reject it.

    Raises `ConflictingRunsError` after `MAX_ATTEMPTS`.
    """
    for _ in range(MAX_ATTEMPTS):
        try:
            return write()
        except Py4JJavaError as error:
            if not is_conflict(error):
                raise
            last = error
    raise ConflictingRunsError(
        f"other runs changed the same rows during each of {MAX_ATTEMPTS} attempts; run the job again when they have"
        f" ended ({last.java_exception.getMessage()})"
    )


def is_conflict(error: Py4JJavaError) -> bool:
    """Return whether Iceberg rejected a commit because of another commit."""
    return any(name in CONFLICTS for name in _class_names(error))


def _class_names(error: Py4JJavaError) -> Iterator[str]:
    cause = error.java_exception
    while cause is not None:
        yield cause.getClass().getSimpleName()
        cause = cause.getCause()
