"""Errors of the exchange's control plane and clients, and their translation from SQS's errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from signalbox.errors import RejectedError
from signalbox.exchange.model.records import ResourceRef
from signalbox.sarracenia.rights.names import UserName

DENIALS = frozenset({"AccessDenied", "AccessDeniedException", "KMS.AccessDeniedException", "KmsAccessDenied"})


class NotFound(RejectedError):
    """Raised when an exchange, a queue or a user does not exist."""


class NotPermitted(RejectedError):
    """Raised when a user lacks the right to do something."""


class HasExceptions(Protocol):
    """A boto3 client with its exception classes."""

    @property
    def exceptions(self) -> Any:  # noqa: ANN401 - boto3 makes them when it makes the client
        """Return the exception classes, `ClientError` among them."""
        ...


@contextmanager
def translated_errors(queues: HasExceptions, *, missing: str, denied: str) -> Iterator[None]:
    """Translate SQS's errors about a missing queue and about denied access into errors with these texts.

    Raises `NotFound` and `NotPermitted`.
    """
    try:
        yield
    except queues.exceptions.QueueDoesNotExist as error:
        raise NotFound(missing) from error
    except queues.exceptions.ClientError as error:
        if error.response["Error"]["Code"] not in DENIALS:
            raise
        raise NotPermitted(denied) from error


@contextmanager
def resource_errors(
    resource: ResourceRef, queues: HasExceptions, *, user: UserName | None, what: str
) -> Iterator[None]:
    """Translate SQS's errors about the queue of a resource. Raises `NotFound` and `NotPermitted`."""
    who = f"user {str(user)!r}" if user else "the owner of these credentials"
    denied = f"{who} may not {what} {resource}: the user's role does not include its name"
    with translated_errors(queues, missing=f"{resource} does not exist: declare it first", denied=denied):
        yield
